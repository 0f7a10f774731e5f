"""Inactivity of peers: nobody is looked at before something may be due, and nothing comes late."""

import asyncio
import contextlib
import random
from typing import cast

import pytest
from running_engine import Running, greeted, introduction
from test_strangers import authenticator, serve

from lockkeeper.message import openwire
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.openwire.session import OpenWireSession
from lockkeeper.server.activity import FAREWELL_MS_MAX, Activity
from lockkeeper.server.strangers import Strangers
from lockkeeper.transport.peer import Guest, Peer

BEAT_MS = 500
LIMITS = (0, 1, 400, 3_000, 30_000)


class FakePeer:
    """A peer and its session in one, without a socket."""

    is_open = False
    is_in = False
    is_paused = False
    inactivity_duration = 0

    def __init__(self, name: int, world: "World") -> None:
        self.address = str(name)
        self.session = self
        self.received_at = self.sent_at = world.steady
        self._world = world

    def is_excused(self) -> bool:
        return self.is_paused

    def keep_alive(self) -> None:
        self._world.log.append((self._world.steady, self.address, "alive"))

    def flush(self) -> None:
        self.sent_at = self._world.steady

    def abort(self) -> None:
        self._world.log.append((self._world.steady, self.address, "abort"))


class World:
    """Peers, a clock, and what became of them; *looks_at_all* with every beat, or at who is due."""

    def __init__(self, looks_at_all: bool) -> None:
        self.log: list[tuple[int, str, str]] = []
        self.steady = 10_000
        self.strangers = Strangers()
        self.activity = Activity(self.strangers)
        self.peers: dict[int, FakePeer] = {}
        self._looks_at_all = looks_at_all

    def beat(self) -> None:
        """Look at the peers, and let go of those who were aborted."""
        before = len(self.log)
        due = self.activity.due(self.steady)
        self.strangers.abort_late_ones(self.steady)
        if self._looks_at_all:
            due = [cast("Peer", peer) for peer in self.peers.values()]
            for peer in due:
                self.activity.hasten(peer)
        for peer in due:
            self.activity.look_at(peer, self.steady)
        for _, name, what in self.log[before:]:
            if what == "abort":
                self.leave(int(name))

    def join(self, name: int) -> None:
        """Let a peer come."""
        peer = cast("Peer", FakePeer(name, self))
        self.peers[name] = cast("FakePeer", peer)
        self.activity.join(peer)
        self.strangers.came(peer, self.steady, 2_000)

    def leave(self, name: int) -> None:
        """Let a peer go."""
        if peer := self.peers.pop(name, None):
            self.activity.leave(cast("Peer", peer))
            self.strangers.gone(cast("Guest", peer))

    def happen(self, what: str, name: int, limit: int) -> None:
        """Let one thing happen to one peer."""
        peer = self.peers.get(name)
        if peer is None:
            self.join(name)
        elif what == "leave":
            self.leave(name)
        elif what == "receive" and not peer.is_paused:
            peer.received_at = self.steady
        elif what == "send":
            peer.sent_at = self.steady
        elif what == "pause":
            peer.is_paused = True
        elif what == "resume" and peer.is_paused:
            peer.is_paused, peer.received_at = False, self.steady
        elif what == "log in" and not peer.is_open:
            peer.inactivity_duration = limit
            peer.is_open = peer.is_in = True
        elif what == "log out" and peer.is_open:
            peer.is_open = peer.is_in = False
            self.activity.hasten(cast("Peer", peer))


@pytest.mark.parametrize("seed", range(20))
def test_who_is_looked_at_when_due_fares_as_if_looked_at_always(seed: int) -> None:
    chance = random.Random(seed)
    world, slow = World(False), World(True)
    kinds = ["receive"] * 8 + ["send"] * 4 + ["log in"] * 4
    kinds += ["pause", "resume", "leave", "log out"]
    for _ in range(3_000):
        passed = chance.choice((1, 50, BEAT_MS, BEAT_MS + 7))
        for _ in range(chance.randrange(4)):
            what, name, limit = chance.choice(kinds), chance.randrange(30), chance.choice(LIMITS)
            world.happen(what, name, limit)
            slow.happen(what, name, limit)
        world.steady += passed
        slow.steady += passed
        if passed >= BEAT_MS:
            world.beat()
            slow.beat()
    # A peer that was paused counts as heard when it goes on, not when it was looked at last.
    assert sorted(world.log) == sorted(slow.log)
    assert {what for _, _, what in world.log} == {"alive", "abort"}
    assert world.activity.looks < slow.activity.looks


@pytest.mark.parametrize("limit", [limit for limit in LIMITS if limit])
def test_what_waited_to_be_read_while_nothing_ran_is_heard(limit: int) -> None:
    """The heartbeat comes before the sockets: uvloop, above all, looks at its clock first."""
    world = World(False)
    world.happen("log in", 1, limit)
    world.happen("log in", 1, limit)
    world.beat()
    for _ in range(5):
        world.steady += limit + BEAT_MS
        world.beat()
        world.happen("receive", 1, limit)
        world.steady += 1
    assert [what for _, _, what in world.log if what == "abort"] == []
    world.steady += limit + BEAT_MS
    world.beat()
    world.steady += BEAT_MS
    world.beat()
    assert [what for _, _, what in world.log if what == "abort"] == ["abort"]
    assert not world.activity._suspects


def test_idle_peers_are_looked_at_only_for_their_signs_of_life() -> None:
    world = World(False)
    for name in range(100):
        world.happen("log in", name, 0)
        world.happen("log in", name, 30_000 if name % 2 else 0)
        world.steady += 7
    world.beat()
    world.beat()
    before = world.activity.looks
    for _ in range(120):
        world.steady += BEAT_MS
        for peer in world.peers.values():
            peer.received_at = world.steady
        world.beat()
    # In a minute each of the 50 gives six signs of life, and is met too early once before each.
    assert [what for _, _, what in world.log] == ["alive"] * 300
    assert world.activity.looks - before <= 50 * 6 * 2


def test_peers_that_are_gone_are_not_kept() -> None:
    world = World(False)
    for limit in LIMITS:
        for name in range(10):
            world.happen("log in", name, limit)
            world.happen("log in", name, limit)
        world.beat()
        for name in range(10):
            world.leave(name)
    assert not world.activity._places
    assert not world.activity._soon
    assert not world.activity._never
    assert not world.activity._suspects
    assert not any(world.activity._spans.values())


def test_a_heartbeat_asks_nothing_of_connections_that_owe_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[OpenWireSession] = []

    def duration(session: OpenWireSession) -> int:
        asked.append(session)
        return 30_000

    async def run() -> None:
        async with Running() as running, contextlib.AsyncExitStack() as stack:
            for number in range(20):
                await stack.enter_async_context(greeted(running, f"ID:{number}"))
            await asyncio.sleep(1.2)
            assert len(running.broker.connections) == 20
            monkeypatch.setattr(OpenWireSession, "inactivity_duration", property(duration))
            await asyncio.sleep(2.2)
            assert len(asked) == 0

    asyncio.run(run())


def test_who_logs_out_and_stays_is_a_stranger_at_the_next_heartbeat() -> None:
    async def test(running: Running) -> None:
        async with greeted(running, "ID:a", user_name="anna", password="tea") as (_, writer):
            async with asyncio.timeout(10):
                while "ID:a" not in running.broker.connections:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(1.2)
            assert len(running.engine.strangers) == 0
            gone = openwire.RemoveInfo(object_id=introduction("ID:a").connection_id)
            writer.write(framed(openwire.encode(gone)))
            await asyncio.sleep(1.2)
            (stay,) = running.engine.strangers._stays.values()
            assert stay.until - stay.since == FAREWELL_MS_MAX

    serve(test, authenticator())
