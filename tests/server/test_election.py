"""When a Lease may be taken, told by a clock that the test moves."""

import pytest

from lockkeeper.server.cluster.election import (
    EPOCH_MAX,
    SECOND_NS,
    Election,
    LeaseRecord,
    read_lease,
    renewed,
    written_lease,
)

OURS, OTHER = "orders-0_a", "orders-1_b"
DURATION = 10 * SECOND_NS


def election() -> Election:
    return Election(OURS, DURATION)


def held(by: str = OTHER, epoch: int = 3, seconds: int = 10, renewed: str = "r1") -> LeaseRecord:
    return LeaseRecord("uid", by, epoch, seconds, "a", renewed)


def test_a_lease_that_was_never_seen_is_not_taken() -> None:
    assert not election().may_take(100 * DURATION)


@pytest.mark.parametrize("holder", ["", OURS])
def test_a_lease_without_a_living_holder_is_taken_at_once(holder: str) -> None:
    candidate = election()
    candidate.observe(held(by=holder), 5)
    assert candidate.may_take(5)


def test_silence_counts_from_when_the_last_sign_was_seen() -> None:
    candidate = election()
    candidate.observe(held(), 1000)
    candidate.observe(held(), 1000 + DURATION - 1)
    assert not candidate.may_take(1000 + DURATION - 1)
    assert candidate.may_take(1000 + DURATION)


def test_a_sign_of_life_begins_the_wait_anew() -> None:
    candidate = election()
    candidate.observe(held(), 0)
    candidate.observe(held(renewed="r2"), DURATION)
    assert not candidate.may_take(2 * DURATION - 1)
    assert candidate.may_take(2 * DURATION)


def test_a_holder_is_given_the_time_that_it_was_promised() -> None:
    candidate = election()
    candidate.observe(held(seconds=60), 0)
    assert not candidate.may_take(59 * SECOND_NS)
    assert candidate.may_take(60 * SECOND_NS)


def test_the_time_in_the_lease_does_not_matter() -> None:
    candidate = election()
    candidate.observe(held(renewed="1999-01-01T00:00:00.000000Z"), 0)
    assert not candidate.may_take(DURATION - 1)


def test_epochs_only_grow() -> None:
    candidate = election()
    candidate.observe(held(epoch=7), 0)
    assert candidate.claim(0, "now").epoch == 8
    assert candidate.claim(40, "now").epoch == 40
    assert renewed(candidate.claim(0, "now"), "later", 50).epoch == 50
    assert renewed(candidate.claim(40, "now"), "later", 5).epoch == 40
    candidate.observe(held(epoch=EPOCH_MAX), 0)
    assert candidate.claim(0, "now").epoch == EPOCH_MAX


def test_what_is_written_is_what_is_read() -> None:
    lease = {"metadata": {"uid": "uid", "name": "orders", "resourceVersion": "4"}}
    assert read_lease(lease) == LeaseRecord("uid")
    written = written_lease(lease, held())
    assert written["metadata"] == lease["metadata"]
    assert read_lease(written) == held()
    strange = {**written, "spec": {**written["spec"], "strategy": "OldestEmulationVersion"}}
    assert written_lease(strange, held(by=""))["spec"]["strategy"] == "OldestEmulationVersion"


@pytest.mark.parametrize(
    ("found", "is_still_ours"),
    [
        (held(by=OURS, renewed="r9"), True),
        (held(by=OTHER, epoch=4), False),
        (held(by=OURS, epoch=4), False),
        (held(by=""), False),
        (LeaseRecord("another"), True),
        (LeaseRecord("another", OTHER, 1), False),
        (LeaseRecord("another", "", 1), False),
    ],
    ids=[
        "renewed", "another's", "of a later process", "emptied by hand", "made anew",
        "made anew and taken", "made anew, taken, given back",
    ],
)  # fmt: skip
def test_what_is_still_our_lease(found: LeaseRecord, is_still_ours: bool) -> None:
    assert election().is_still(found, held(by=OURS)) is is_still_ours
