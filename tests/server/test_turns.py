"""Turns of the event loop, and what each of them costs: writes, syncs, wake-ups."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from inprocess import Served
from loads import NUMBERS, Wire

from lockkeeper.message.destination import queue

ORDERS, OTHERS = queue("ORDERS"), queue("OTHERS")
IDLE_TURNS = 20


class Carrier:
    """Brings bytes to a peer at once, and leaves turns to the test."""

    def __init__(self, counted: "Counted") -> None:
        number = counted.served.connect()
        self._counted = counted
        self._written = counted.served.transports[number].written
        self.write = counted.served.peers[number].data_received

    def read(self) -> bytes:
        """Return what was written to the peer, after as many turns as that takes."""
        for _ in range(IDLE_TURNS):
            if self._written:
                data = b"".join(self._written)
                self._written.clear()
                return data
            self._counted.turn()
        raise AssertionError("the broker does not answer")

    def close(self) -> None:
        """Stay."""


class Counted:
    """A broker that counts what it asks of the system."""

    def __init__(self, directory: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.served = self.loop.run_until_complete(self._serve(directory))
        self.turn()

    async def _serve(self, directory: Path) -> Served:
        return Served(directory, keeps=True)

    def turn(self) -> None:
        """Have one round of the event loop."""
        self.loop.run_until_complete(asyncio.sleep(0))

    def bring(self, *rounds: dict[Wire, bytes]) -> int:
        """Bring bytes by several wires at once; each time there is one turn, and no more.

        Returns how many syncs that made.
        """

        async def scene() -> int:
            before = self.served.disk.syncs
            for brought in rounds:
                for wire, data in brought.items():
                    wire.write(data)
                await asyncio.sleep(0)
            return self.served.disk.syncs - before

        return self.loop.run_until_complete(scene())

    def wire(self, name: str) -> Wire:
        """Return a new client."""
        return Wire(Carrier(self), name, ORDERS)

    def idle(self) -> None:
        """Have turns until nothing is left to do."""
        for _ in range(IDLE_TURNS):
            self.turn()


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Counted]:
    found = Counted(tmp_path)
    yield found
    found.served.close()
    found.loop.close()


def numbered(wire: Wire, number: int, answered: bool = True) -> bytes:
    message = wire.message(persistent=True, answered=answered)
    return message.replace(bytes([0x51]) * 8, number.to_bytes(8, "big"))


def test_one_producer_is_not_kept_waiting_for_others(counted: Counted) -> None:
    producer, consumer = counted.wire("ID:producer"), counted.wire("ID:consumer").consume()
    producer.write(numbered(producer, 1))
    (numbers,) = consumer.take(1)
    producer.read(30, 1)
    counted.idle()
    # An acknowledgement of what is written brings nothing that hurries.
    ended = consumer.acknowledgement().replace(NUMBERS, numbers)
    assert counted.bring({producer: numbered(producer, 2), consumer: ended}) == 1


def test_what_several_producers_bring_shares_a_sync(counted: Counted) -> None:
    producers = [counted.wire(f"ID:producer-{number}") for number in range(4)]
    batches = (producers[:2], producers[2:])
    counted.idle()
    syncs = counted.served.disk.syncs
    counted.bring(*({each: numbered(each, 1) for each in some} for some in batches))
    counted.idle()
    assert counted.served.disk.syncs == syncs + 1
    for producer in producers:
        producer.read(30, 1)
