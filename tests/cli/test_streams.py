"""`lockkeeper streams` and `lockkeeper groups`: what a broker finds in its journal, and a reset."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_support import CommandLine, role_at, run_broker, stop, wait_until
from ports import free_ports
from streams_kit import DiskBench

from lockkeeper.broker.streams.settings import Retention, StreamSettings

RESET = "2023-11-14T22:13:21+00:00"
"""A second after the beginning, when the second message came."""


@pytest.fixture
def admin(tmp_path: Path) -> Iterator[str]:
    """Run a broker that finds a stream and a group; return its admin address."""
    data = tmp_path / "data"
    bench = DiskBench(data)
    client = bench.connect()
    bench.broker.streams.declare("orders", StreamSettings(2, Retention(time=0, messages=1000)))
    for body in "abc":
        bench.append(client, "orders", body, partition=1)
        bench.tick(1_000)
    bench.broker.streams.commit_offset("billing", "orders", 1, 2)
    bench.broker.streams.groups.lock(client, "l", "billing", "me", [("orders", 1)])
    bench.settle()
    bench.broker.streams.close()
    bench.store.close()
    port, admin_port = free_ports(2)
    address = f"http://127.0.0.1:{admin_port}"
    process = run_broker(data, f"openwire://127.0.0.1:{port}", f"127.0.0.1:{admin_port}")
    wait_until(lambda: role_at(address) == "master", process)
    yield address
    stop(process)


def test_streams_and_groups_are_shown_and_set_back(
    admin: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKKEEPER_ADMIN", admin)
    lockkeeper = CommandLine(capsys, monkeypatch)
    (stream,) = lockkeeper.done("streams", "--json").json()["streams"]
    assert (stream["name"], stream["messages"]) == ("orders", 3)
    offsets = [(each["minimum"], each["maximum"]) for each in stream["partitions"]]
    assert offsets == [(0, 0), (0, 3)]
    assert "1,000 messages a partition" in lockkeeper.done("streams", "ord*").out
    assert "There is no stream x" in lockkeeper.done("streams", "x").out
    assert len(lockkeeper.done("streams", "--partitions").out.splitlines()) >= 2

    (group,) = lockkeeper.done("groups", "lag", "billing", "--json").json()["groups"]
    places = [(each["offset"], each["lagMessages"]) for each in group["partitions"]]
    assert places == [(0, 0), (2, 1)], "also where the group has never begun"
    assert [each["lockedBy"] for each in group["partitions"]] == [None, "me"]
    with urllib.request.urlopen(f"{admin}/api/v1/destinations/streams/orders", timeout=20) as said:
        view = json.loads(said.read())
    assert (view["depth"], len(view["partitions"])) == (3, 2)
    (behind,) = view["groups"]
    assert (behind["name"], behind["members"], behind["lagMessages"]) == ("billing", 0, 1)
    assert behind["lagTime"] >= group["lagTime"] > 0
    assert "billing" in lockkeeper.done("groups", "lag").out
    assert "There is no group x." in lockkeeper.done("groups", "lag", "x").out
    assert "Nobody is in a group." in lockkeeper.done("groups", "members").out
    with urllib.request.urlopen(f"{admin}/metrics", timeout=20) as answer:
        figures = answer.read().decode()
    assert 'lockkeeper_stream_messages{stream="orders"} 3' in figures
    assert 'lockkeeper_group_lag_messages{group="billing",stream="orders"} 1' in figures

    said = lockkeeper.done("why", "group", "billing").out
    assert said.splitlines() == [
        "billing: 1 message to consume, 0 members",
        "  the group has no member",
        "    way out: start one; one that runs is at another broker, or has another group",
        "orders: 1 message to consume",
    ]
    (asked,) = lockkeeper.done("why", "group", "billing", "--stream", "orders", "--json").json()[
        "streams"
    ]
    assert [each["lagMessages"] for each in asked["partitions"]] == [0, 1]

    said = lockkeeper.done("groups", "reset", "billing", "orders", "--to", RESET).out
    assert said == "billing goes on in orders at 0: 0, 1: 1\n"
    lockkeeper.done("groups", "reset", "billing", "orders", "--to", "first")
    (group,) = lockkeeper.done("groups", "lag", "--json").json()["groups"]
    assert [each["offset"] for each in group["partitions"]] == [0, 0]

    said = lockkeeper.done("groups", "reset", "billing", "orders", "--to", "1:2").out
    assert said == "billing goes on in orders at 1: 2\n"
    said = lockkeeper.done("groups", "reset", "%QUEUE%later", "orders", "--to", "0:9,1:1").out
    assert said == "%QUEUE%later goes on in orders at 0: 0, 1: 1\n"
    for group, place, says in (
        ("x", "last", "no group x"),
        ("billing", "1:x", "expected first, last, a time or offsets"),
        ("billing", "7:1", "partition"),
    ):
        wrong = lockkeeper("groups", "reset", group, "orders", "--to", place)
        assert wrong.code != 0
        assert says in wrong.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["group", "nobody"], 1, "there is no group nobody"),
        (["group", "billing", "--stream", "x"], 1, "nothing to do with x; it consumes orders"),
        (["group"], 2, "which group?"),
        (["Q", "--stream", "x"], 2, "--stream is for"),
    ],
)
def test_questions_about_groups_without_an_answer(
    admin: str,
    arguments: list[str],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOCKKEEPER_ADMIN", admin)
    outcome = CommandLine(capsys, monkeypatch)("why", *arguments)
    assert outcome.code == code
    assert said in outcome.err
