"""Figures for Prometheus, as its own parser reads them."""

import urllib.request
from collections.abc import Callable
from typing import Any

from pods import Pod
from prometheus_client.parser import text_string_to_metric_families

from lockkeeper.client import connect
from lockkeeper.journal.counters import COUNTERS
from lockkeeper.server.metrics import DESTINATIONS_MAX, exposition, families

StartPod = Callable[..., Pod]
STANDBY: dict[str, Any] = {
    "broker": "orders", "replica": "orders-1", "version": "1.2", "role": "standby",
    "takesOver": True, "since": 1.5, "epoch": None, "lease": None,
}  # fmt: skip
MASTER = {
    **STANDBY,
    "role": "master",
    "epoch": 3,
    "connections": 2,
    "connectionsBeforeLogin": 4,
    "connectionsTurnedAway": {"late": 1, "displaced": 0, "full": 2},
    "memory": {"used": 10, "limit": 20},
    "store": {"files": 1, "bytes": 2, "waitingOperations": 0, "spooledBytes": 0},
    "blockedSends": [{"sends": 2}, {"sends": 3}],
    "preparedTransactions": ["XA"],
    "containedErrors": {"counts": {"timer": 3, "command": 0}, "latest": []},
}


def parsed(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def destination(name: str, depth: int = 0) -> dict[str, Any]:
    counters = [counter.json_name for counter in COUNTERS]
    return {
        "name": name, "kind": "Queue", "temporary": False, "depth": depth, "inFlight": 0,
        "consumers": 0, "memoryBytes": 0, **dict.fromkeys(counters, 7),
    }  # fmt: skip


def test_a_master_tells_of_itself_and_its_destinations(start_pod: StartPod) -> None:
    pod = start_pod(spec="  access: {anonymous: true}").wait_for("master")
    with connect(f"tcp://127.0.0.1:{pod.port}") as connection:
        connection.session().producer('A "B"').send("hello")
    with urllib.request.urlopen(f"{pod.admin}/metrics") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        found = parsed(answer.read().decode())
    assert found["lockkeeper_role", (("broker", "orders"), ("role", "master"))] == 1
    labels = (("destination", 'A "B"'), ("kind", "Queue"))
    assert found["lockkeeper_destination_messages", labels] == 1
    assert found["lockkeeper_destination_enqueued_total", labels] == 1


def test_a_standby_says_that_it_is_one_and_nothing_of_destinations() -> None:
    found = parsed(exposition(families(STANDBY, [])))
    broker = (("broker", "orders"),)
    assert found["lockkeeper_takes_over", broker] == 1
    assert found["lockkeeper_role_since_seconds", broker] == 1.5
    assert not [name for name, _ in found if "destination" in name or name == "lockkeeper_epoch"]


def test_what_waits_is_summed_up() -> None:
    found = parsed(exposition(families(MASTER, [])))
    broker = (("broker", "orders"),)
    assert found["lockkeeper_blocked_sends", broker] == 5
    assert found["lockkeeper_prepared_transactions", broker] == 1
    assert found["lockkeeper_contained_errors_total", (("kind", "timer"),)] == 3


def test_of_too_many_destinations_the_deepest_are_told() -> None:
    many = [destination(f"Q{number}", depth=number) for number in range(DESTINATIONS_MAX + 2)]
    found = parsed(exposition(families(MASTER, many)))
    names = {dict(labels).get("destination") for _, labels in found}
    assert found["lockkeeper_destinations_left_out", ()] == 2
    assert "Q0" not in names and "Q1" not in names and "Q2" in names
    rest = (("destination", "(others)"), ("kind", "Queue"))
    assert found["lockkeeper_destination_messages", rest] == 0 + 1
    assert found["lockkeeper_destination_enqueued_total", rest] == 2 * 7


def test_the_age_of_a_lease_is_told_where_there_is_one() -> None:
    name, broker = "lockkeeper_lease_silence_seconds", (("broker", "orders"),)
    leased = {**STANDBY, "lease": {"holder": "orders-0_uid", "renewedAgo": 1500}}
    assert parsed(exposition(families(leased, [])))[name, broker] == 1.5
    assert (name, broker) not in parsed(exposition(families(STANDBY, [])))


def bridge(**said: Any) -> dict[str, Any]:
    counts = (
        *("enqueued", "dequeued", "bytes", "replayed", "received", "duplicates"),
        *("unconfirmed", "lag", "waiting", "stranded"),
    )
    told = {"name": "NC", "address": "tcp://hub:1", "initiator": True, "broker": "hub"}
    return {**told, "state": "connected", **dict.fromkeys(counts, 5), **said}


def test_bridges_are_told_of_by_name_and_peer() -> None:
    bridges = [bridge(), bridge(state="waiting", address="tcp://spare:1")]
    found = parsed(exposition(families({**MASTER, "bridges": bridges}, ())))
    hub, spare = (
        (("bridge", "NC"), ("broker", "orders"), ("peer", f"tcp://{host}:1"))
        for host in ("hub", "spare")
    )
    assert found["lockkeeper_bridge_connected", hub] == 1
    assert found["lockkeeper_bridge_connected", spare] == 0
    assert found["lockkeeper_bridge_dequeued_total", hub] == 5
    assert found["lockkeeper_bridge_lag_seconds", hub] == 0.005


def test_bridges_that_others_dialled_go_by_their_brokers() -> None:
    bridges = [bridge(initiator=False, address=f"tcp://10.0.0.1:{port}") for port in (1, 2)]
    found = parsed(exposition(families({**MASTER, "bridges": bridges}, ())))
    labels = (("bridge", "NC"), ("broker", "orders"), ("peer", "hub"))
    assert found["lockkeeper_bridge_received_total", labels] == 10


def test_without_bridges_nothing_is_told_of_any() -> None:
    found = parsed(exposition(families({**MASTER, "bridges": []}, ())))
    assert not [name for name, _ in found if name.startswith("lockkeeper_bridge")]
