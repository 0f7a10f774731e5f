"""Targets: what people and programs write as text: URLs, selectors, schedules, configurations."""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from fuzzer import Target, WrongError, new_directory
from mutations import mutated
from recordings import GOLDEN

from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.scheduling.schedule import CRON, DELAY, PERIOD, REPEAT, read_schedule
from lockkeeper.broker.selectors.errors import InvalidSelectorError
from lockkeeper.broker.selectors.selector import CONVERT_PREFIX, compile_selector
from lockkeeper.cli.bodies import BodyType, parse_properties, to_body
from lockkeeper.cli.connecting import destination, seconds
from lockkeeper.cli.destinations import is_wanted
from lockkeeper.cli.errors import CommandError
from lockkeeper.cli.resources import with_addresses
from lockkeeper.client.errors import BrokerUrlError
from lockkeeper.client.url import parse_url
from lockkeeper.message.destination import path_covers, path_matches, paths_overlap
from lockkeeper.message.ids import parse_xid
from lockkeeper.message.text import decode_text, encode_text
from lockkeeper.server.configuration import RefusedConfigurationError, read_configuration
from lockkeeper.server.secrets import USERS, InvalidSecretError, read_users
from lockkeeper.store.base import Identity
from lockkeeper.store.kahadb.term import epoch_of, identity_of, term_line
from lockkeeper_api import Broker, InvalidResourceError
from lockkeeper_api.documents import parse_resources
from lockkeeper_api.passwords import InvalidHashError, check_hash, hashed
from lockkeeper_api.units import parse_duration, parse_size

PROJECT = Path(__file__).parents[2]
SAMPLE = "docs/samples/broker.yaml"
NOW = 1_700_000_000_000

URLS = (
    "tcp://127.0.0.1:61616", "ssl://[::1]:61617?ssl.caFile=/ca&socket.verifyHostName=false",
    "failover:(tcp://a:1,tcp://b:2?keepAlive=true)?maxReconnectAttempts=3&timeout=100",
    "failover:tcp://a:1", "failover://(ssl://a:1)?nested.tcpNoDelay=true&jms.sendTimeout=5",
    "tcp://h:1?wireFormat.maxInactivityDuration=0&wireFormat.maxFrameSize=1&jms.closeTimeout=0",
    "failover:(tcp://a:1)?reconnectDelayExponent=2.5&useExponentialBackOff=true&randomize=false",
)  # fmt: skip
URL_WORDS = (
    "[", "]", "(", ")", "%", "%00", "?", "&", "=", ",", "//", ":", "@", "\0", "\u0661", "nan",
    "inf", "1e999", "-1", "99999999999999999999", "9" * 5000, "failover:", "failover:(", "nested.",
)  # fmt: skip
SELECTOR_WORDS = (
    "NOT ", " AND ", " OR ", "(", ")", "((((((((", "'", "''", " LIKE '%_' ESCAPE '\\'",
    " IN ('a','b')",
    " BETWEEN 1 AND ", " IS NULL", " IS NOT NULL", "-", "+", "*", "/", "<>", "<=", "1e308", "0x",
    "1L", ".5", "1e", "9" * 5000, "TRUE", "\0", "\ud800", "ß", "--", "/*", "*/", "--9",
)  # fmt: skip
CRONS = ("* * * * *", "0 12 1 1 *", "*/5 0-23 1,15 JAN-DEC MON-FRI", "0 0 29 2 *", "0 0 L * *",
         "0 0 * * 5#3", "0 0 30 2 *")  # fmt: skip


def targets() -> list[Target]:
    """Return all of this theme."""
    return [
        Target("urls", _texts(URLS, URL_WORDS), _on_text(parse_url), (BrokerUrlError,), 2),
        Target("selectors", _texts(_selectors(), SELECTOR_WORDS), _on_text(_select),
               (InvalidSelectorError,), 3),
        Target("schedules", _texts(_schedules(), (*CRONS, "*/0", "60", "-1", "9" * 5000, "L", "#")),
               _on_text(_schedule), (BrokerError,), 1),
        Target("names", _texts(_names(), URL_WORDS), _on_text(_name), (ValueError,), 1),
        Target("commands", _texts(_arguments(), URL_WORDS), _on_text(_argument),
               (CommandError,), 1),
        Target("traces", _texts(_traces(), ('"', "{", "9" * 20, "lk1 ")), _trace, (), 0.5),
        Target("texts", partial(mutated, corpus=[encode_text("aä€\0\U0001f600z") * 3]), _text,
               (UnicodeDecodeError,), 1),
        Target("configurations", _texts(_configurations(), YAML_WORDS), _on_text(_configure),
               (InvalidResourceError, RefusedConfigurationError), 0.02, seconds=4),
        Target("users", _texts(_users(), ("$", ":", "9" * 5000, "\n", "=")), _users_file,
               (InvalidSecretError, InvalidHashError), 0.2),
    ]  # fmt: skip


def _texts(corpus: Iterable[str], words: Sequence[str]) -> Callable[[Random], bytes]:
    made = [each.encode("utf-8", "surrogatepass") for each in corpus]
    known = [each.encode("utf-8", "surrogatepass") for each in words]
    return partial(mutated, corpus=made, words=known)


def _on_text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """Return what reads bytes as text, whatever they are; lone surrogates are kept."""

    def run(data: bytes) -> None:
        try:
            text = data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            text = data.decode("utf-8", "surrogateescape")
        read(text)

    return run


def _selectors() -> list[str]:
    lines = (GOLDEN / "selectors" / "activemq-5.17.6.jsonl").read_text("utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return [each["selector"] for each in found if each.get("selector")]


SEEN: dict[str, Any] = {
    "i": 5, "j": -2, "f": 2.5, "s": "abc", "yes": True, "big": 1 << 40, "digits": "12",
    "inf": float("inf"), "nan": float("nan"), "JMSPriority": 4,
}  # fmt: skip


def _select(text: str) -> None:
    for wanted in (text, CONVERT_PREFIX + text):
        chosen = compile_selector(wanted).matches(SEEN.get)
        if not isinstance(chosen, bool):
            raise WrongError(f"{wanted!r} chooses {chosen!r}")


def _schedules() -> list[str]:
    numbers = ["1000|2000|3|", "0|0|0|", "|||", "9007199254740992|1|1|"]
    return [*numbers, *(f"1|2|3|{cron}" for cron in CRONS)]


def _schedule(text: str) -> None:
    """Read the four properties that make a schedule, and when it is due first."""
    named = dict(zip((DELAY, PERIOD, REPEAT, CRON), text.split("|", 3), strict=False))
    read_schedule(named).first_due(NOW, UTC)


def _names() -> list[str]:
    return [
        "queue://A.B", "topic://VirtualTopic.>", "temp-queue://ID:x:1", "A,topic://B,queue://C.*",
        "*.>.A", "XID:[1,globalId=00ff,branchId=]", "1.5Gi", "1h30m", "500ms", "1Gi", "100%",
    ]  # fmt: skip


def _name(text: str) -> None:
    """Read a name as all that a name may be; the first to refuse it ends that."""
    left, right = tuple(text.split(".")), ("A", "*", ">")
    for compare in (path_matches, path_covers, paths_overlap):
        compare(left, right)
        compare(right, left)
    is_wanted(text, "Queue", "A.B.C")
    errors = 0
    for read in (parse_size, parse_duration, parse_xid, _destination):
        try:
            read(text)
        except ValueError:
            errors += 1
    if errors == 4:
        raise ValueError(text)


def _destination(text: str) -> None:
    from lockkeeper.message.destination import parse_destination

    for part in parse_destination(text).parts():
        encode_text(str(part))


def _arguments() -> list[str]:
    return ["queue://A", "30s", "500ms", "a=1", 'b="x"', "c=true", "openwire://0.0.0.0:61616",
            "127.0.0.1:8161", "d=1e999", "openwire://[::1]:0"]  # fmt: skip


def _argument(text: str) -> None:
    """Read an argument of the command line as all that it may be."""
    broker = _broker()
    for read in (
        destination,
        lambda each: seconds("--timeout", each),
        lambda each: parse_properties([each]),
        lambda each: to_body(each.encode("utf-8", "replace"), BodyType.TEXT, "line 1"),
        lambda each: with_addresses(broker, [each], None),
        lambda each: with_addresses(broker, [], each),
    ):
        try:
            read(text)
        except CommandError:
            continue


@cache
def _broker() -> Broker:
    (broker,) = parse_resources((PROJECT / SAMPLE).read_text("utf-8"), SAMPLE).brokers
    return broker


def _traces() -> list[str]:
    return [
        term_line(7, NOW, Identity("orders", "ID:orders-1"), "orders-0"),
        'lk1 {"t":"x"}',
        "[Ljava.lang.Object;",
    ]


def _trace(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    if not 0 <= epoch_of(text) < 10**19:
        raise WrongError(f"epoch {epoch_of(text)}")
    identity_of(text)


def _text(data: bytes) -> None:
    text = decode_text(data)
    if decode_text(encode_text(text)) != text:
        raise WrongError(f"{text!r} is another text when written and read")


YAML_WORDS = ("&a ", "*a", "!!python/object:os.system ", "[" * 60, "{", "- ", "1e999", "\t", "|",
              "---\n", "<<: ", "\0", "null", "9" * 5000, "2001-01-01", "64Mi")  # fmt: skip


def _configurations() -> list[str]:
    folders = ("docs/samples", "tests/interop/configurations")
    return [path.read_text("utf-8") for each in folders
            for path in sorted((PROJECT / each).glob("*.yaml"))]  # fmt: skip


def _configure(text: str) -> None:
    for broker in parse_resources(text, "broker.yaml").brokers:
        read_configuration([("broker.yaml", text)], broker)


def _users() -> list[str]:
    return [f"anna:{hashed('a', b'salt')}\n\nbob:{hashed('b', b'pepper')}\n"]


_directory = cache(new_directory)


def _users_file(data: bytes) -> None:
    (_directory() / USERS).write_bytes(data)
    try:
        read_users(_directory())
    finally:
        check_hash(data.decode("latin-1").partition(":")[2])
