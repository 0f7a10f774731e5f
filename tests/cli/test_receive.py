"""`lockkeeper receive` and `browse` against a real broker."""

import base64
import os
import pty
import signal
import subprocess
import sys
import time

import pytest
from cli_support import COMMAND, CommandLine

from lockkeeper.client import connect
from lockkeeper.message.primitives import Long

MORE_THAN_ANY_TEST_SENDS = "100000"


def bodies(lockkeeper: CommandLine, queue: str) -> list[str]:
    """Return what waits in a queue."""
    found = lockkeeper("browse", queue, "--json", "--limit", "0").json_lines()
    return [message["body"] for message in found]


def test_one_message_is_taken_the_others_stay(lockkeeper: CommandLine, queue: str) -> None:
    lockkeeper.done("send", queue, "--stdin-lines", stdin=b"one\ntwo\nthree\n")
    assert lockkeeper.done("receive", queue).out == "one\n"
    (second,) = lockkeeper.done("browse", queue, "--json", "-s", "JMSRedelivered = FALSE",
                                "--limit", "0").json_lines()[:1]  # fmt: skip
    assert second["body"] == "two"
    assert bodies(lockkeeper, queue) == ["two", "three"]


def test_as_many_are_taken_as_are_asked_for(lockkeeper: CommandLine, queue: str) -> None:
    lockkeeper.done("send", queue, "x", "--count", "30")
    taken = lockkeeper.done("receive", queue, "--count", "20", "--json").json_lines()
    assert [message["deliveryCount"] for message in taken] == [1] * 20
    assert len(bodies(lockkeeper, queue)) == 10


def test_too_few_messages_are_exit_code_1(lockkeeper: CommandLine, queue: str) -> None:
    outcome = lockkeeper("receive", queue, "--timeout", "100ms")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "lockkeeper: no message came within 0.1 s\n"
    lockkeeper.done("send", queue, "x")
    outcome = lockkeeper("receive", queue, "--count", "2", "--timeout", "0.1")
    assert (outcome.code, outcome.out) == (1, "x\n")
    assert outcome.err == "lockkeeper: 1 of 2 messages came, then none within 0.1 s\n"


def test_all_or_none_in_a_transaction(lockkeeper: CommandLine, queue: str) -> None:
    lockkeeper.done("send", queue, "--stdin-lines", stdin=b"one\ntwo\n")
    transacted = ("receive", queue, "--transacted", "--timeout", "100ms", "--count")
    outcome = lockkeeper(*transacted, "3")
    assert outcome.code == 1
    assert "2 of 3 messages came, then none within 0.1 s; nothing was taken" in outcome.err
    assert bodies(lockkeeper, queue) == ["one", "two"]
    assert lockkeeper.done(*transacted, "2").out == "one\ntwo\n"
    assert bodies(lockkeeper, queue) == []


def test_only_what_the_selector_says_is_taken(lockkeeper: CommandLine, queue: str) -> None:
    for region in ("EU", "US"):
        lockkeeper.done("send", queue, region, "-p", f"region={region}")
    assert lockkeeper.done("receive", queue, "-s", "region = 'US'").out == "US\n"
    assert bodies(lockkeeper, queue) == ["EU"]


def test_a_wrong_selector_is_misuse(lockkeeper: CommandLine, queue: str) -> None:
    for command in ("receive", "browse"):
        outcome = lockkeeper(command, queue, "--selector", "a >> 1")
        assert outcome.code == 2
        assert outcome.err.startswith("lockkeeper: invalid selector at character 4")
        assert "javax" not in outcome.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["Q", "--transacted", "--follow"], "--transacted needs an end"),
        (["topic://T", "--subscription", "s"], "--subscription needs topic://NAME and --client-id"),
        (["Q", "--subscription", "s", "--client-id", "c"], "--subscription needs topic://NAME"),
        (["queue://"], "a destination needs a name"),
    ],
)
def test_options_that_do_not_go_together(
    lockkeeper: CommandLine, arguments: list[str], said: str
) -> None:
    outcome = lockkeeper("receive", *arguments)
    assert outcome.code == 2
    assert said in outcome.err


def test_a_durable_subscription_collects_while_nobody_receives(lockkeeper: CommandLine) -> None:
    subscribe = ("receive", "topic://NEWS", "--subscription", "late", "--client-id", "me")
    assert lockkeeper(*subscribe, "--timeout", "100ms").code == 1
    lockkeeper.done("send", "topic://NEWS", "--stdin-lines", stdin=b"one\ntwo\nthree\n")
    assert lockkeeper.done(*subscribe).out == "one\n"
    assert lockkeeper.done(*subscribe, "--count", "2").out == "two\nthree\n"
    assert lockkeeper(*subscribe, "--timeout", "100ms").code == 1


def test_a_topic_has_nothing_to_browse(lockkeeper: CommandLine) -> None:
    outcome = lockkeeper("browse", "topic://NEWS")
    assert outcome.code == 2
    assert "only queues can be browsed" in outcome.err


def test_bodies_of_every_type(
    lockkeeper: CommandLine, queue: str, broker: "object", monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(os.environ["LOCKKEEPER_URL"]) as connection:
        producer = connection.session().producer(queue)
        producer.send({"a": 1, "b": b"\x00", "c": Long(2)})
        producer.send(["x", 1.5])
        producer.send(b"\xff\x00")
        producer.send(None)
        producer.send("täglich\nmehr")
    found = lockkeeper.done("browse", queue, "--json").json_lines()
    assert [message["body"] for message in found] == [
        {"a": 1, "b": base64.b64encode(b"\x00").decode(), "c": 2},
        ["x", 1.5], base64.b64encode(b"\xff\x00").decode(), None, "täglich\nmehr",
    ]  # fmt: skip
    assert [message["type"] for message in found] == ["map", "stream", "bytes", "message", "text"]
    shown = lockkeeper.done("browse", queue).out
    assert '\n["x", 1.5]\n' in shown
    assert "\n(2 bytes: ff 00)\n" in shown
    assert "\n(no body)\n" in shown


def test_raw_bytes_survive_the_way_through_the_broker(
    lockkeeper: CommandLine, queue: str, broker: "object"
) -> None:
    data = bytes(range(256))
    lockkeeper.done("send", queue, "--file", "-", "--type", "bytes", stdin=data)
    taken = subprocess.run([COMMAND, "receive", queue, "--raw"], capture_output=True, check=True)
    assert taken.stdout == data


def test_a_limited_look_says_that_there_is_more(lockkeeper: CommandLine, queue: str) -> None:
    lockkeeper.done("send", queue, "x", "--count", "3")
    outcome = lockkeeper("browse", queue, "--limit", "2")
    assert (outcome.code, len(outcome.out.splitlines())) == (0, 4)
    assert outcome.err == "lockkeeper: there are more than 2; --limit 0 shows all\n"
    assert lockkeeper("browse", f"{queue}.NONE").err == (
        f"lockkeeper: queue://{queue}.NONE holds nothing\n"
    )


def test_a_message_that_could_not_be_printed_is_not_lost(
    lockkeeper: CommandLine, queue: str
) -> None:
    lockkeeper.done("send", queue, "precious")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing) as closed:
        failed = subprocess.run(
            [COMMAND, "receive", queue], stdout=closed, stderr=subprocess.PIPE, check=False
        )
    assert failed.returncode == 1
    assert b"Traceback" not in failed.stderr
    assert bodies(lockkeeper, queue) == ["precious"]


def test_following_ends_with_control_c(lockkeeper: CommandLine, queue: str) -> None:
    lockkeeper.done("send", queue, "one")
    with subprocess.Popen(
        [COMMAND, "receive", queue, "--follow"], stdout=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "one\n"
        lockkeeper.done("send", queue, "two")
        assert following.stdout.readline() == "two\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(10) == 0
    assert bodies(lockkeeper, queue) == []


def test_a_terminal_shows_headers_and_nothing_that_steers_it(
    lockkeeper: CommandLine, queue: str
) -> None:
    lockkeeper.done("send", queue, "\x1b[2Jevil", "-p", "region=EU")
    ours, theirs = pty.openpty()
    subprocess.run([COMMAND, "receive", queue], stdout=theirs, check=True)
    time.sleep(0.1)
    shown = os.read(ours, 4096).decode()
    os.close(ours)
    os.close(theirs)
    assert "region=EU" in shown
    assert "�[2Jevil" in shown
    assert "\x1b[2J" not in shown


def test_a_person_who_waits_for_a_broker_is_told_so() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "lockkeeper.cli.main", "receive", "Q",
         "--url", "failover:(tcp://127.0.0.1:1)"],
        stderr=subprocess.PIPE, text=True,
    ) as waiting:  # fmt: skip
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == (
            "lockkeeper: waiting for a broker at failover:(tcp://127.0.0.1:1); Ctrl-C gives up\n"
        )
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(10) == 130
