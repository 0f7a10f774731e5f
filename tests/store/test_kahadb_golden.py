"""Directories that real ActiveMQ wrote: opened, they hold what ActiveMQ itself recovered."""

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

import pytest
from store_kit import Kit

from lockkeeper.message.destination import queue
from lockkeeper.message.ids import XATransactionId
from lockkeeper.store.base import Add, Recovered, Reference, Remove, StoreError
from lockkeeper.store.kahadb import KahaDBStore

GOLDEN = Path(__file__).parents[1] / "golden" / "kahadb"
SCENARIOS = ["amq-5.17.2-clean", "amq-5.17.2-crash", "amq-6.1.7-clean", "amq-6.1.7-crash"]
INDEX = {"db.data", "db.redo", "db.free"}


class Message(TypedDict):
    """A message, as far as it is looked at."""

    id: str


class Prepared(TypedDict):
    """A prepared transaction with one message."""

    format: int
    gtrid: str
    bqual: str
    message: str


class Truth(TypedDict):
    """The manifest of a directory, as far as it is looked at."""

    recovered_after_index_deletion: dict[str, list[Message]]
    xa_prepared_add: Prepared
    xa_prepared_ack: Prepared


@pytest.fixture(params=SCENARIOS)
def scenario(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def directory(scenario: str, tmp_path: Path) -> Path:
    return shutil.copytree(GOLDEN / scenario, tmp_path / "data")


@pytest.fixture
def truth(scenario: str) -> Truth:
    told: Truth = json.loads((GOLDEN / f"{scenario}.manifest.json").read_text())
    return told


def ids(store: KahaDBStore, references: Iterable[Reference]) -> list[str]:
    listed = list(references)
    store.load(listed, 1)
    return [one.loaded.key.decode() for one in listed]


def contents(store: KahaDBStore, recovered: Recovered) -> dict[str, list[str]]:
    """Return all message ids by destination, in the words of the manifest."""
    found = {name.name: ids(store, references) for name, references in recovered.queues.items()}
    for entry in recovered.subscriptions:
        one = entry.subscription
        name = f"sub:{one.client_id}:{one.name}:{one.destination.name}"
        selector = f":{one.selector}" if one.selector else ""
        found[name + selector] = ids(store, entry.pending)
    return found


def expected(truth: Truth) -> dict[str, list[str]]:
    listed = truth["recovered_after_index_deletion"]
    return {
        name: [message["id"] for message in messages]
        for name, messages in listed.items()
        if name != "xa_recover"
    }


def checksums(directory: Path) -> dict[str, bytes]:
    files = [path for path in directory.iterdir() if path.name != "lock"]
    return {path.name: hashlib.sha256(path.read_bytes()).digest() for path in files}


def test_the_messages_are_those_that_activemq_recovered(directory: Path, truth: Truth) -> None:
    store = KahaDBStore(directory)
    assert contents(store, store.open()) == expected(truth)
    store.close()


def test_prepared_transactions_are_those_that_activemq_recovered(
    directory: Path, truth: Truth
) -> None:
    store = KahaDBStore(directory)
    prepared = store.open().prepared
    added, consumed = truth["xa_prepared_add"], truth["xa_prepared_ack"]

    def identifier(entry: Prepared) -> XATransactionId:
        gtrid, bqual = bytes.fromhex(entry["gtrid"]), bytes.fromhex(entry["bqual"])
        return XATransactionId(entry["format"], gtrid, bqual)

    assert prepared.keys() == {identifier(added), identifier(consumed)}
    (add,), (remove,) = prepared[identifier(added)], prepared[identifier(consumed)]
    assert isinstance(add, Add)
    assert isinstance(remove, Remove)
    assert ids(store, add.references) == [added["message"]]
    assert ids(store, remove.references) == [consumed["message"]]
    store.close()


def test_subscriptions_come_back_with_selector_and_no_local(directory: Path) -> None:
    store = KahaDBStore(directory)
    found = {entry.subscription.name: entry.subscription for entry in store.open().subscriptions}
    assert found.keys() == {"sub-all", "sub-sel"}
    assert (found["sub-sel"].selector, found["sub-sel"].no_local) == ("color = 'red'", True)
    assert (found["sub-all"].selector, found["sub-all"].no_local) == (None, False)
    store.close()


def test_what_is_written_afterwards_is_there_with_the_rest(
    directory: Path, truth: Truth, kit: Kit
) -> None:
    store = KahaDBStore(directory)
    recovered = store.open()
    bulk = list(recovered.queues[queue("GOLD.BULK")])
    consumed = ids(store, bulk[:2])
    store.add(queue("NEW"), kit.reference(1, queue("NEW")), None)
    for one in bulk[:2]:
        store.remove(queue("GOLD.BULK"), one)
    kit.until_durable(store)
    store.close()
    after = expected(truth)
    after["NEW"] = ["ID:producer-1:1:1:1:1"]
    after["GOLD.BULK"] = [one for one in after["GOLD.BULK"] if one not in consumed]
    again = KahaDBStore(directory)
    assert contents(again, again.open()) == after
    again.close()


@pytest.mark.parametrize("scenario", ["amq-5.17.2-clean"])
def test_opening_changes_nothing_but_the_lock(directory: Path) -> None:
    before = checksums(directory)
    store = KahaDBStore(directory)
    store.open()
    store.close()
    assert checksums(directory) == before


@pytest.mark.parametrize("scenario", ["amq-5.17.2-clean", "amq-5.17.2-crash"])
def test_the_index_goes_before_the_first_write(directory: Path, kit: Kit) -> None:
    store = KahaDBStore(directory)
    store.open()
    assert (directory / "db.data").exists()
    store.add(queue("NEW"), kit.reference(1, queue("NEW")), None)
    kit.until_durable(store)
    assert not INDEX & checksums(directory).keys()
    store.close()


@pytest.mark.parametrize("scenario", ["amq-5.17.2-clean"])
def test_files_of_activemq_are_collected_when_nothing_in_them_is_live(
    directory: Path, kit: Kit
) -> None:
    store = KahaDBStore(directory)
    for identifier, operations in store.open().prepared.items():
        store.commit_prepared(identifier, operations, None)
    kit.until_durable(store)
    store.close()
    store = KahaDBStore(directory, clock=kit.clock, file_bytes_max=4096)
    recovered = store.open()
    for destination, references in recovered.queues.items():
        for one in references:
            store.remove(destination, one)
    for entry in recovered.subscriptions:
        for one in entry.pending:
            store.remove(entry.subscription.destination, one, None, entry.subscription)
    kit.until_durable(store)
    for number in range(40):
        one = kit.reference(number)
        store.add(queue("A"), one, None)
        kit.until_durable(store)
        store.remove(queue("A"), one)
    kit.until_durable(store)
    for turn in range(6):
        kit.maintain(store, turn * 40_000)
        kit.until_durable(store)
    names = checksums(directory).keys()
    assert not INDEX & names
    assert not {"db-1.log", "db-4.log", "db-5.log"} & names
    store.close()
    again = KahaDBStore(directory)
    recovered = again.open()
    assert recovered.queues == {}
    assert [entry.pending for entry in recovered.subscriptions] == [[], []]
    again.close()


@pytest.mark.parametrize("scenario", ["amq-5.17.2-clean"])
def test_a_store_of_an_old_openwire_version_is_refused(directory: Path) -> None:
    data = bytearray((directory / "db.data").read_bytes())
    end = 4096 + int.from_bytes(data[4096 + 9 : 4096 + 17], "big")
    assert data[end - 1] == 11
    data[end - 1] = 6
    (directory / "db.data").write_bytes(data)
    with pytest.raises(StoreError, match=r"db.data: messages are stored as OpenWire 6"):
        KahaDBStore(directory).open()


@pytest.mark.parametrize("mode", ["none", "sparse", "zeros", "chunked", "async", "nochecksum"])
def test_every_preallocation_of_activemq_is_read_and_gone_on_with(
    mode: str, tmp_path: Path, kit: Kit
) -> None:
    directory = shutil.copytree(GOLDEN / f"prealloc-{mode}", tmp_path / "data")
    files = len(list(directory.glob("db-*.log")))
    store = KahaDBStore(directory)
    recovered = store.open()
    name = queue("P.Q")
    store.load(list(recovered.queues[name]), 1)
    assert len(recovered.queues[name]) == 5
    store.add(name, kit.reference(1, name), None)
    kit.until_durable(store)
    store.close()
    again = KahaDBStore(directory)
    assert len(again.open().queues[name]) == 6
    again.close()
    # A file that was only prepared is not used: whoever prepared it may write into it still.
    assert len(list(directory.glob("db-*.log"))) == files + 1
