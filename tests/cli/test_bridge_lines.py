"""Lines of `lockkeeper status` about bridges to other brokers."""

from typing import Any

from lockkeeper.cli.status import listing

MASTER: dict[str, Any] = {
    "broker": "orders", "replica": "orders-0", "role": "master", "since": 1.0, "pid": 7,
    "data": "data", "listeners": [], "admin": "http://127.0.0.1:8161", "connections": 1,
    "memory": {"used": 0, "limit": 1}, "store": {"bytes": 0, "files": 1},
}  # fmt: skip
BRIDGE: dict[str, Any] = {
    "name": "to-hub", "address": "tcp://hub:61616", "initiator": True, "duplex": True,
    "state": "connected", "broker": "hub", "failure": None, "dequeued": 1200, "received": 3,
    "unconfirmed": 0, "stranded": 0,
}  # fmt: skip


def lines(**said: Any) -> tuple[str, ...]:
    return tuple(listing([{**MASTER, "bridges": [{**BRIDGE, **said}]}], 2.0).below)


def test_a_bridge_says_where_it_leads_and_what_went_over_it() -> None:
    assert lines() == (
        "Bridge to-hub to tcp://hub:61616, broker hub, both ways: 1,200 forwarded, 3 received",
    )


def test_what_is_not_confirmed_is_told() -> None:
    (line,) = lines(initiator=False, duplex=False, unconfirmed=4)
    assert line == (
        "Bridge to-hub from tcp://hub:61616, broker hub, one way: "
        "1,200 forwarded, 3 received, 4 not confirmed"
    )


def test_what_is_stranded_is_told() -> None:
    (line,) = lines(stranded=7)
    assert line.endswith("3 received, 7 stranded here")


def test_a_bridge_that_is_down_says_why() -> None:
    said = {"state": "waiting", "broker": None}
    assert lines(**said, failure="[Errno 111] Connect call failed") == (
        "Bridge to-hub to tcp://hub:61616: [Errno 111] Connect call failed",
    )
    assert lines(**said) == ("Bridge to-hub to tcp://hub:61616: waits for the other broker",)


def test_without_bridges_there_are_no_lines() -> None:
    assert listing([{**MASTER, "bridges": []}], 2.0).below == ()
