"""`lockkeeper why` against a real broker."""

import pytest
from cli_support import CommandLine, Place

from lockkeeper.client import Acknowledge, connect


def test_a_queue_tells_why_its_messages_wait(
    broker: Place, lockkeeper: CommandLine, queue: str
) -> None:
    identifier = lockkeeper.done("send", queue, "x").out.strip()
    lines = lockkeeper.done("why", queue).out.splitlines()
    assert lines[0] == f"queue://{queue}: 1 message waiting, 0 with consumers"
    assert lines[1:] == ["  the queue has no consumer", "    way out: start one"]
    with connect(broker.url) as connection:
        session = connection.session(acknowledge=Acknowledge.CLIENT)
        assert session.consumer(queue).receive(5) is not None
        (reason,) = lockkeeper.done("why", queue, identifier, "--json").json()["reasons"]
        assert reason["reason"] == "held"
        assert reason["address"].startswith("tcp://127.0.0.1:")
    assert lockkeeper.done("why", f"queue://{queue}", "ID:no:1").out.splitlines()[1] == (
        "  the queue has no message ID:no:1"
    )


def test_the_journal_tells_why_its_files_are_kept(lockkeeper: CommandLine, queue: str) -> None:
    lockkeeper.done("send", queue, "x", "--count", "3")
    (file,) = lockkeeper.done("why", "file", "--json").json()["files"]
    assert file["file"] == "db-1.log"
    counts = {each.get("destination"): each.get("messages") for each in file["reasons"]}
    assert counts[f"queue://{queue}"] == 3
    out = lockkeeper.done("why", "file", "db-1.log").out
    assert out.startswith("db-1.log: 32 MiB\n  it is being written\n    way out: ")
    assert f"  it holds 3 messages of queue://{queue}, " in out


def test_nobody_waits(lockkeeper: CommandLine) -> None:
    assert lockkeeper.done("why", "producer").out == "no producer waits\n"
    assert lockkeeper.done("why", "producer", "SOMEBODY", "--json").json() == {"reasons": []}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["NOBODY.KNOWS"], 1, "there is no queue NOBODY.KNOWS"),
        (["file", "db-99.log"], 1, "there is no journal file db-99.log"),
        (["topic://T"], 2, "a topic keeps nothing"),
    ],
)
def test_questions_without_an_answer(
    lockkeeper: CommandLine, arguments: list[str], code: int, said: str
) -> None:
    outcome = lockkeeper("why", *arguments)
    assert outcome.code == code
    assert said in outcome.err
