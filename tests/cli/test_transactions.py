"""`lockkeeper transactions`: what a broker finds prepared in its journal, and deciding it."""

import json
import select
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_support import CommandLine, role_at, run_broker, stop, wait_until
from ports import free_ports

from lockkeeper.message.destination import parse_destination
from lockkeeper.message.ids import MessageId, ProducerId, XATransactionId
from lockkeeper.message.openwire import ActiveMQTextMessage
from lockkeeper.message.rewrite import encoded
from lockkeeper.store.base import Add, Operation, Reference
from lockkeeper.store.kahadb import KahaDBStore

COMMITTED, ABANDONED = (XATransactionId(-86, b"global\xff", bytes([number])) for number in (1, 2))
ORDERS = parse_destination("ORDERS")


class Receipt:
    """Notes that the store is done."""

    def settle(self) -> None:
        """Nothing else is to do."""


def message(number: int) -> Reference:
    """Return a message for ORDERS."""
    producer = ProducerId("ID:bank-1:1", 1, 1)
    made = encoded(
        ActiveMQTextMessage(
            producer_id=producer,
            destination=ORDERS,
            message_id=MessageId(producer, number),
            persistent=True,
            content=b"\x00\x00\x00\x04paid",
        ),
        number,
    )
    return Reference(made, len(made.body))


@pytest.fixture
def admin(tmp_path: Path) -> Iterator[str]:
    """Run a broker that finds two prepared transactions; return its admin address."""
    data = tmp_path / "data"
    store = KahaDBStore(data)
    store.open()
    receipts: list[object] = []
    for identifier, count in ((COMMITTED, 1), (ABANDONED, 2)):
        adds: list[Operation] = [Add(ORDERS, [message(number)]) for number in range(count)]
        store.prepare(identifier, adds, Receipt())
        receipts += store.flush()
    while len(receipts) < 2:
        descriptor = store.fileno()
        assert descriptor is not None
        assert select.select([descriptor], [], [], 20)[0]
        receipts += [*store.completed(), *store.flush()]
    store.close()
    port, admin_port = free_ports(2)
    address = f"http://127.0.0.1:{admin_port}"
    listen = f"openwire://127.0.0.1:{port}"
    process = run_broker(data, listen, f"127.0.0.1:{admin_port}")
    wait_until(lambda: role_at(address) == "master", process)
    yield address
    stop(process)


@pytest.fixture
def lockkeeper(
    admin: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """The command line, whose commands find the broker by the environment."""
    monkeypatch.setenv("LOCKKEEPER_ADMIN", admin)
    return CommandLine(capsys, monkeypatch)


def depth(lockkeeper: CommandLine) -> int:
    """Return how many messages wait in ORDERS."""
    found = lockkeeper.done("destinations", "ORDERS", "--json").json()["destinations"]
    return found[0]["depth"] if found else 0


def test_prepared_transactions_are_listed_and_decided(lockkeeper: CommandLine) -> None:
    found = lockkeeper.done("transactions", "list", "--json").json()
    assert found == [
        {
            "transaction": str(identifier),
            "state": "prepared",
            "sent": {"queue://ORDERS": count},
            "consumed": {},
        }
        for identifier, count in ((COMMITTED, 1), (ABANDONED, 2))
    ]
    out = lockkeeper.done("transactions", "list").out
    assert "2 messages queue://ORDERS" in out
    assert depth(lockkeeper) == 0

    said = lockkeeper.done("transactions", "commit", str(COMMITTED)).out
    assert said == f"committed {COMMITTED}\n"
    assert depth(lockkeeper) == 1
    lockkeeper.done("transactions", "rollback", str(ABANDONED))
    assert depth(lockkeeper) == 1
    states = [each["state"] for each in lockkeeper.done("transactions", "list", "--json").json()]
    assert states == ["committed", "rolled back"]

    again = lockkeeper("transactions", "commit", str(ABANDONED))
    assert (again.code, again.out) == (1, "")
    assert "is not prepared" in again.err
    nonsense = lockkeeper("transactions", "commit", "XID:1")
    assert nonsense.code == 1
    assert "XID:[…]" in nonsense.err


def test_only_json_decides(admin: str) -> None:
    body = json.dumps({"transaction": str(COMMITTED), "outcome": "rollback"}).encode()
    request = urllib.request.Request(
        f"{admin}/api/v1/transactions", body, {"Content-Type": "text/plain"}
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=5)
    assert refused.value.code == 415
