"""`lockkeeper dlq` against a real broker: list, show, retry, purge."""

import os
import pty
import subprocess
from collections import Counter
from collections.abc import Callable

import pytest
from cli_support import COMMAND, CommandLine, Place

from lockkeeper.client import Acknowledge, RedeliveryPolicy, connect
from lockkeeper_analytics.trace.steps import trace

DEAD = "ActiveMQ.DLQ"


@pytest.fixture
def dead(broker: Place, lockkeeper: CommandLine, queue: str) -> Callable[..., list[str]]:
    """Return a function that makes dead letters of texts sent to the test's queue."""
    lockkeeper("dlq", "purge", "--all", "--yes")

    def make(*texts: str, **properties: str) -> list[str]:
        with connect(broker.url) as connection:
            session = connection.session(acknowledge=Acknowledge.CLIENT)
            producer = session.producer(queue)
            identifiers = [producer.send(text, properties, priority=7) for text in texts]
            consumer = session.consumer(queue, redelivery=RedeliveryPolicy(maximum_redeliveries=0))
            for _ in texts:
                message = consumer.receive(5)
                assert message is not None
                message.reject("no such account")
        return identifiers

    return make


def dead_again(broker: Place, queue: str) -> None:
    """Let the message that waits in a queue die."""
    with connect(broker.url) as connection:
        session = connection.session(acknowledge=Acknowledge.CLIENT)
        consumer = session.consumer(queue, redelivery=RedeliveryPolicy(maximum_redeliveries=0))
        message = consumer.receive(5)
        assert message is not None
        message.reject("no such account")


def waiting(lockkeeper: CommandLine, queue: str) -> list[str]:
    """Return the bodies that wait in a queue."""
    found = lockkeeper("browse", queue, "--json", "--limit", "0").json_lines()
    return [message["body"] for message in found]


def test_dead_letters_are_listed_with_their_origin_and_cause(
    lockkeeper: CommandLine, queue: str, dead: Callable[..., list[str]]
) -> None:
    (identifier,) = dead("one")
    title, line = lockkeeper.done("dlq", "list").out.splitlines()
    assert title.split() == ["Message", "From", "Cause"]
    assert line.startswith(identifier)
    assert f"queue://{queue}" in line
    assert "no such account" in line
    (told,) = lockkeeper.done("dlq", "list", "--json").json_lines()
    assert told["body"] == "one"
    assert "no such account" in told["properties"]["dlqDeliveryFailureCause"]


def test_a_list_may_be_longer_than_is_shown(
    lockkeeper: CommandLine, dead: Callable[..., list[str]]
) -> None:
    dead("one", "two", "three")
    outcome = lockkeeper("dlq", "list", "--limit", "2")
    assert len(outcome.out.splitlines()) == 3
    assert "more than 2" in outcome.err


def test_one_dead_letter_is_shown_whole(
    lockkeeper: CommandLine, queue: str, dead: Callable[..., list[str]]
) -> None:
    identifier, _ = dead("one\ntwo", "other", region="EU")
    shown = lockkeeper.done("dlq", "show", identifier).out
    assert f"messageId: {identifier}\n" in shown
    assert f"originalDestination: queue://{queue}\n" in shown
    assert "region: EU\n" in shown
    assert shown.endswith("\n\none\ntwo\n")
    assert lockkeeper.done("dlq", "show", identifier, "--json").json()["body"] == "one\ntwo"


def test_a_message_that_is_not_there_is_exit_code_1(lockkeeper: CommandLine) -> None:
    for command in ("show", "retry"):
        outcome = lockkeeper("dlq", command, "ID:nobody:1")
        assert outcome.code == 1
        assert f"queue://{DEAD} has no" in outcome.err


def test_dead_letters_go_back_where_they_came_from(
    lockkeeper: CommandLine, queue: str, dead: Callable[..., list[str]]
) -> None:
    identifier, _ = dead("one", "two", region="EU")
    assert lockkeeper.done("dlq", "retry", "--all").out == f"2 messages to queue://{queue}\n"
    assert waiting(lockkeeper, DEAD) == []
    first, second = lockkeeper("browse", queue, "--json").json_lines()
    assert (first["body"], second["body"]) == ("one", "two")
    assert first["properties"] == {"region": "EU", "lockkeeper_retry_of": identifier}
    assert first["priority"] == 7
    assert "originalDestination" not in first


def test_what_goes_back_has_the_schedule_that_it_had(
    lockkeeper: CommandLine, queue: str, dead: Callable[..., list[str]]
) -> None:
    (identifier,) = dead("one", AMQ_SCHEDULED_DELAY="1000")
    lockkeeper.done("dlq", "retry", identifier)
    (found,) = lockkeeper("browse", queue, "--json").json_lines()
    schedule = {"AMQ_SCHEDULED_DELAY": "1000"}
    assert found["properties"] == {**schedule, "lockkeeper_retry_of": identifier}


def test_the_trace_follows_a_message_that_died_twice(
    broker: Place, lockkeeper: CommandLine, queue: str, dead: Callable[..., list[str]]
) -> None:
    (first,) = dead("one")
    lockkeeper.done("dlq", "retry", "--all")
    (second,) = (each["messageId"] for each in lockkeeper("browse", queue, "--json").json_lines())
    dead_again(broker, queue)
    lockkeeper.done("dlq", "retry", "--all")
    (third,) = (each["messageId"] for each in lockkeeper("browse", queue, "--json").json_lines())
    assert len({first, second, third}) == 3
    for identifier in (first, second, third):
        found = trace(identifier, [str(broker.data)])
        arrived = [row for row in found if row["step"] == "arrived"]
        # The times of what follows at once are bounds, and no order.
        assert Counter((row["destination"], row["retry_of"]) for row in arrived) == {
            (queue, None): 1,
            (DEAD, None): 1,
            (queue, first): 2,
            (DEAD, first): 1,
        }
        assert (found[-1]["step"], found[-1]["message_id"]) == ("pending", third)


def test_only_those_that_are_named_or_selected_go_back(
    lockkeeper: CommandLine, queue: str, dead: Callable[..., list[str]]
) -> None:
    first, _ = dead("one", "two", region="EU")
    dead("three", region="US")
    lockkeeper.done("dlq", "retry", "--selector", "region = 'US'")
    assert waiting(lockkeeper, queue) == ["three"]
    lockkeeper.done("dlq", "retry", first, "--selector", "region = 'EU'")
    assert waiting(lockkeeper, queue) == ["three", "one"]
    assert waiting(lockkeeper, DEAD) == ["two"]


def test_they_may_go_elsewhere(
    lockkeeper: CommandLine, queue: str, dead: Callable[..., list[str]]
) -> None:
    dead("one")
    lockkeeper.done("dlq", "retry", "--all", "--to", f"{queue}.CLINIC")
    assert waiting(lockkeeper, f"{queue}.CLINIC") == ["one"]


def test_many_go_back_in_several_transactions(
    lockkeeper: CommandLine, queue: str, dead: Callable[..., list[str]]
) -> None:
    texts = [str(number) for number in range(250)]
    dead(*texts)
    assert lockkeeper.done("dlq", "retry", "--all").out.startswith("250 messages")
    assert waiting(lockkeeper, queue) == texts


def test_what_has_no_origin_stays(lockkeeper: CommandLine, queue: str) -> None:
    lockkeeper.done("send", queue, "lost")
    outcome = lockkeeper("dlq", "retry", "--all", "--queue", queue)
    assert outcome.code == 1
    assert "--to" in outcome.err
    assert waiting(lockkeeper, queue) == ["lost"]


def test_dead_letters_are_ended(lockkeeper: CommandLine, dead: Callable[..., list[str]]) -> None:
    first, _, _ = dead("one", "two", "three")
    assert lockkeeper.done("dlq", "purge", first, "--yes").out == "1 message ended\n"
    assert waiting(lockkeeper, DEAD) == ["two", "three"]
    assert lockkeeper.done("dlq", "purge", "--all", "--yes").out == "2 messages ended\n"
    assert waiting(lockkeeper, DEAD) == []


@pytest.mark.parametrize(("answer", "left"), [(b"y\n", []), (b"n\n", ["one"])])
def test_on_a_terminal_a_person_is_asked_first(
    broker: Place,
    lockkeeper: CommandLine,
    dead: Callable[..., list[str]],
    answer: bytes,
    left: list[str],
) -> None:
    dead("one")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, "dlq", "purge", "--all", "--url", broker.url],
        stdin=theirs,
        stdout=subprocess.PIPE,
    )
    os.write(ours, answer)
    said, _ = process.communicate(timeout=30)
    assert b"End 1 message of queue://ActiveMQ.DLQ for good?" in said
    assert process.returncode == len(left)
    assert waiting(lockkeeper, DEAD) == left


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["retry"], "no messages are named"),
        (["purge", "--all", "--selector", "a = 1"], "--all goes with neither"),
        (["purge", "--all"], "give --yes"),
        (["list", "--queue", "topic://T"], "dead letters wait in queues"),
    ],
)
def test_requests_that_make_no_sense(
    lockkeeper: CommandLine, arguments: list[str], said: str
) -> None:
    outcome = lockkeeper("dlq", *arguments)
    assert outcome.code == 2
    assert said in outcome.err
