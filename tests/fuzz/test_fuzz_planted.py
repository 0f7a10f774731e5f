"""Bugs planted in what reads journals: the fuzzer sees each, or it could not fail."""

from collections.abc import Iterator

import pytest
from fuzzer import fuzz
from run_fuzz import all_targets

from lockkeeper.journal import damage, recount, walk
from lockkeeper.journal.batch import control_record
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.message.ids import TransactionId
from lockkeeper.store.kahadb import store

SEED = 20_261_122


def found(name: str, inputs: int) -> set[str]:
    """Return what the target of this name finds, the first words of each finding."""
    (target,) = (each for each in all_targets() if each.name == name)
    return {each.what[:50] for each in fuzz(target, SEED, inputs).findings}


def begins(findings: set[str], words: str) -> bool:
    return any(each.startswith(words) for each in findings)


def test_a_recovery_that_reads_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "_PRIORITY_DEFAULT", 5)
    assert begins(found("records", 300), "WrongError: recovery reads")


@pytest.mark.replaces
def test_a_recovery_that_refuses_what_is_legal_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def strict(data: bytes, offset: int, stop: int, name: str) -> None:
        raise BadRecordError("not laid out the usual way", name, offset)

    monkeypatch.setattr(walk, "_careful", strict)
    assert begins(found("records", 500), "WrongError: recovery refuses what can be read")


@pytest.mark.replaces
def test_a_reader_that_trusts_lengths_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def trusting(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        while start < end:
            yield data[start] >> 3, data[start] & 7, data[start + 1], start + 2
            start += 2 + data[start + 1]

    monkeypatch.setattr(walk, "walk_fields", trusting)
    assert begins(found("records", 1500), "IndexError")


def test_damage_that_is_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = control_record
    monkeypatch.setattr(damage, "control_record", lambda records: sound(records[1:]))
    wrong = "WrongError: what is sound of the file is not sound"
    assert begins(found("files", 200), wrong)


def test_an_end_of_a_transaction_that_nobody_expects_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def trusting(
        counter: recount._Counter, identifier: TransactionId, file_id: int
    ) -> recount._Transaction:
        return counter._transactions.pop(identifier)

    monkeypatch.setattr(recount._Counter, "_end", trusting)
    assert begins(found("directories", 600), "KeyError")


@pytest.mark.replaces
def test_damage_that_is_not_set_aside_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "accept_loss", lambda *_: [])
    assert begins(found("recoveries", 30), "WrongError: refused although loss is accepted")
