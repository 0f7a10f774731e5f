"""Handshake and login of an OpenWire connection, phase by phase, and what each lets in."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from served import NOW, SETTINGS, Served

from lockkeeper.broker.access.authenticator import Verdict
from lockkeeper.broker.access.rights import Rights
from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.message import openwire
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import ConnectionId, RemoveInfo, ShutdownInfo
from lockkeeper.protocols.openwire.login import PARTING_MS
from lockkeeper.protocols.openwire.phases import (
    CLOSED,
    HANDSHAKE,
    LOGIN,
    OPEN,
    PARTING,
    VERIFYING,
    Phase,
)
from lockkeeper.protocols.openwire.session import OpenWireSession
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.memory import MemoryStore


class Keeper:
    """Is asked, and tells its verdict when the test wants it to."""

    def __init__(self) -> None:
        self.asked: list[Verdict] = []

    def check_password(
        self, user: str | None, password: str | None, tell: Verdict, address: str = ""
    ) -> None:
        self.asked.append(tell)

    def tell(self, rights: Rights | None) -> None:
        self.asked.pop(0)(rights)


class Guarded(Served):
    """A broker that lets nobody in whom its keeper does not know, with one connection."""

    def __init__(self) -> None:
        self.keeper = Keeper()
        self.broker = Broker(MemoryStore(), "b", "ID:b", PolicyMap(), SETTINGS, NOW, self.keeper)
        self.broker.recover()
        self.session = OpenWireSession(self.broker, ListenerSettings(), "tcp://10.0.0.1:1")

    def phase(self) -> Phase:
        return self.session._progress.phase

    def ask(self) -> "Guarded":
        self.tell(openwire.ConnectionInfo(connection_id=ConnectionId("c"), response_required=True))
        return self

    def open(self) -> "Guarded":
        self.greeted()
        self.ask().keeper.tell(everything())
        return self

    def pass_time(self, milliseconds: int) -> None:
        now = self.broker.now + milliseconds
        self.broker.tick(now, self.broker.steady + milliseconds)

    def send(self) -> None:
        producer = ProducerId("c", 1, 1)
        message = openwire.ActiveMQMessage(
            producer_id=producer, destination=queue("Q"), message_id=MessageId(producer, 1)
        )
        self.tell(message)

    def depth(self) -> int:
        region = self.broker.registry.find(queue("Q"))
        return 0 if region is None else region.depth()


def everything() -> Rights:
    return Rights("anna", frozenset(), None)


def test_a_client_goes_through_the_phases() -> None:
    guarded = Guarded()
    assert guarded.phase() is HANDSHAKE
    guarded.greeted()
    assert guarded.phase() is LOGIN
    guarded.ask()
    assert guarded.phase() is VERIFYING
    guarded.keeper.tell(everything())
    assert guarded.phase() is OPEN
    guarded.send()
    assert guarded.depth() == 1
    guarded.tell(RemoveInfo(object_id=ConnectionId("c")))
    assert guarded.phase() is LOGIN
    guarded.tell(ShutdownInfo())
    assert (guarded.phase(), guarded.session.closing) == (CLOSED, True)


def test_everybody_is_let_in_where_nobody_is_asked() -> None:
    served = Served()
    assert served.session._progress.phase is HANDSHAKE
    served.greeted()
    assert served.session.is_open


def test_a_refused_client_may_try_again_and_is_parted_with_in_the_end() -> None:
    guarded = Guarded()
    guarded.greeted()
    guarded.ask().keeper.tell(None)
    assert guarded.phase() is PARTING
    guarded.ask()
    assert guarded.phase() is VERIFYING
    guarded.keeper.tell(None)
    guarded.pass_time(PARTING_MS - 1)
    assert guarded.phase() is PARTING
    guarded.pass_time(1)
    assert (guarded.phase(), guarded.session.closing) == (CLOSED, True)


def test_a_second_attempt_that_is_let_in_stays() -> None:
    guarded = Guarded()
    guarded.greeted()
    guarded.ask().keeper.tell(None)
    guarded.ask().keeper.tell(everything())
    guarded.pass_time(10 * PARTING_MS)
    assert (guarded.phase(), guarded.session.closing) == (OPEN, False)


def test_who_is_in_already_is_not_asked_again() -> None:
    guarded = Guarded().open()
    guarded.ask()
    assert guarded.keeper.asked == []
    guarded.send()
    assert (guarded.phase(), guarded.depth()) == (OPEN, 1)


@pytest.mark.parametrize(
    "begin", [Guarded.greeted, lambda one: one.greeted().ask(), lambda one: one.open()]
)
def test_a_lost_connection_is_closed_whatever_its_phase(
    begin: Callable[[Guarded], object],
) -> None:
    guarded = Guarded()
    begin(guarded)
    guarded.session.connection_lost()
    for tell in guarded.keeper.asked:
        tell(everything())
    assert guarded.phase() is CLOSED
    assert guarded.broker.connections == {}


def test_a_message_before_the_login_ends_the_connection() -> None:
    guarded = Guarded()
    guarded.greeted()
    guarded.send()
    assert (guarded.phase(), guarded.depth()) == (CLOSED, 0)
    assert guarded.session.failure == "a message before its connection is open, or cut short"
