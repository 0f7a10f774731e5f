"""`lockkeeper send` against a real broker."""

import re
from pathlib import Path

import pytest
from cli_support import CommandLine

MESSAGE_ID = re.compile(r"ID:\S+-\d+-\d+-\d+:1:1:1:1")


def test_a_sent_message_is_there_and_its_id_is_told(lockkeeper: CommandLine, queue: str) -> None:
    sent = lockkeeper.done("send", queue, "two pounds of tea").out.strip()
    assert MESSAGE_ID.fullmatch(sent)
    (message,) = lockkeeper.done("browse", queue, "--json").json_lines()
    assert message["messageId"] == sent
    assert (message["type"], message["body"]) == ("text", "two pounds of tea")
    assert message["destination"] == f"queue://{queue}"


def test_everything_a_message_can_carry(lockkeeper: CommandLine, queue: str) -> None:
    lockkeeper.done(
        "send", f"queue://{queue}", "x", "--priority", "7", "--ttl", "1h", "--non-persistent",
        "--correlation-id", "c-1", "--reply-to", "topic://ANSWERS", "--jms-type", "order",
        "--group", "g-1", "-p", "region=EU", "-p", "amount=12", "-p", "price=1.5",
        "-p", "paid=true", "-p", 'number="12"', "-p", "code=007", "-p", "empty=",
    )  # fmt: skip
    (message,) = lockkeeper.done("browse", queue, "--json").json_lines()
    assert message["expiration"] - message["timestamp"] == 3_600_000
    del message["messageId"], message["timestamp"], message["expiration"]
    assert message == {
        "destination": f"queue://{queue}",
        "type": "text",
        "priority": 7,
        "persistent": False,
        "deliveryCount": 1,
        "correlationId": "c-1",
        "replyTo": "topic://ANSWERS",
        "jmsType": "order",
        "groupId": "g-1",
        "properties": {
            "region": "EU", "amount": 12, "price": 1.5, "paid": True, "number": "12",
            "code": "007", "empty": "",
        },
        "body": "x",
    }  # fmt: skip


def test_numbers_are_numbers_for_selectors(lockkeeper: CommandLine, queue: str) -> None:
    for amount in ("9", "10", "110"):
        lockkeeper.done("send", queue, amount, "-p", f"amount={amount}")
    found = lockkeeper.done("browse", queue, "-s", "amount > 9", "--json").json_lines()
    assert [message["body"] for message in found] == ["10", "110"]


def test_many_messages_are_summed_up(lockkeeper: CommandLine, queue: str) -> None:
    said = lockkeeper.done("send", queue, "again", "--count", "1201").out
    assert re.fullmatch(rf"sent 1,201 messages to queue://{queue} in [\d.]+ s \([\d,]+/s\)\n", said)
    summary = lockkeeper.done("send", queue, "again", "--count", "2", "--json").json()
    assert summary["messages"] == 2
    found = lockkeeper.done("browse", queue, "--limit", "0", "--json").json_lines()
    assert [message["body"] for message in found] == ["again"] * 1203


def test_each_line_of_standard_input_is_a_message(lockkeeper: CommandLine, queue: str) -> None:
    lines = [f"line {number} " + "ä" * (number % 300) for number in range(1100)]
    text = "\n".join(lines).replace("line 7 ", "line 7\r", 1)
    said = lockkeeper.done("send", queue, "--stdin-lines", stdin=text.encode()).out
    assert said.startswith("sent 1,100 messages to")
    found = lockkeeper.done("browse", queue, "--limit", "0", "--json").json_lines()
    assert [message["body"] for message in found] == text.split("\n")


def test_no_lines_are_no_messages(lockkeeper: CommandLine, queue: str) -> None:
    assert lockkeeper.done("send", queue, "--stdin-lines").out.startswith("sent 0 messages to")


def test_a_file_is_sent_as_it_is(lockkeeper: CommandLine, queue: str, tmp_path: Path) -> None:
    path = tmp_path / "picture"
    path.write_bytes(bytes(range(256)))
    lockkeeper.done("send", queue, "--file", str(path), "--type", "bytes")
    lockkeeper.done("send", queue, "--file", "-", stdin=b"from a pipe\n")
    binary, text = lockkeeper.done("browse", queue, "--json").json_lines()
    assert (binary["type"], binary["bodyEncoding"], binary["body"][:8]) == (
        "bytes", "base64", "AAECAwQF",
    )  # fmt: skip
    assert text["body"] == "from a pipe\n"


def test_a_file_that_is_no_text_is_not_sent_as_text(
    lockkeeper: CommandLine, queue: str, tmp_path: Path
) -> None:
    path = tmp_path / "picture"
    path.write_bytes(b"ab\xff")
    outcome = lockkeeper("send", queue, "--file", str(path))
    assert outcome.code == 2
    assert outcome.err == (
        f"lockkeeper: {path}: byte 2 is no UTF-8; --type bytes sends it as it is\n"
    )


def test_a_line_that_is_no_text_is_named_and_what_went_before_counted(
    lockkeeper: CommandLine, queue: str
) -> None:
    lines = b"fine\n" * 600 + b"\xff\n"
    outcome = lockkeeper("send", queue, "--stdin-lines", stdin=lines)
    assert outcome.code == 2
    assert "line 601: byte 0 is no UTF-8" in outcome.err
    assert "(500 messages were sent before)" in outcome.err
    assert len(lockkeeper.done("browse", queue, "--limit", "0", "--json").json_lines()) == 500


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to send: give either TEXT, --file FILE or --stdin-lines"),
        (["text", "--stdin-lines"], "more than one thing to send"),
        (["--stdin-lines", "--count", "3"], "--stdin-lines sends each line once"),
        (["text", "-p", "colour"], "--property colour: write NAME=VALUE"),
        (
            ["text", "-p", f"big={2**64}"],
            "--property big=18446744073709551616: a whole number has 64 bits",
        ),
        (["text", "--ttl", "soon"], "--ttl: expected a duration such as 500ms, 30s or 5m"),
        (["text", "--ttl", "-1"], "--ttl: expected a duration of 0 s or more"),
        (["text", "--reply-to", "kafka://X"], "kafka://X: write NAME, queue://NAME or"),
        (
            ["text", "--url", "amqp://x"],
            "'amqp://x' does not begin with tcp://, ssl:// or failover:",
        ),
        (["text", "--priority", "10"], "--priority"),
    ],
)
def test_misuse_is_told_and_nothing_is_sent(
    lockkeeper: CommandLine, queue: str, arguments: list[str], said: str
) -> None:
    outcome = lockkeeper("send", queue, *arguments)
    assert outcome.code == 2
    assert said in outcome.err
    assert lockkeeper("browse", queue, "--json").out == ""


def test_a_broker_that_is_not_there_is_named_with_the_way_out(lockkeeper: CommandLine) -> None:
    outcome = lockkeeper("send", "ORDERS", "x", "--url", "tcp://127.0.0.1:1")
    assert outcome.code == 1
    assert outcome.err == (
        "lockkeeper: no broker could be reached at tcp://127.0.0.1:1: Connection refused; "
        "start one with `lockkeeper up`, or name another by --url\n"
    )
