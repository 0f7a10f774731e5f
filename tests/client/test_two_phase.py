"""Branches of distributed transactions: prepared is kept, whatever happens; the outcome is one."""

import uuid
from typing import NamedTuple

import pytest
from brokers import RunningBroker
from client_support import Connect, left, take
from relay import Relay

from lockkeeper.client import (
    Connection,
    Consumer,
    IllegalStateError,
    Producer,
    RefusedError,
    Session,
    TransactionRolledBackError,
    Xid,
)


class Begun(NamedTuple):
    """A session whose branch has consumed "taken" and sent "sent"."""

    session: Session
    consumer: Consumer
    producer: Producer


@pytest.fixture
def branch() -> Xid:
    return Xid(4711, uuid.uuid4().bytes, b"here")


def begin(connection: Connection, queue_name: str, branch: Xid) -> Begun:
    connection.session().producer(queue_name).send("taken")
    session = connection.session(transacted=True)
    consumer, producer = session.consumer(queue_name), session.producer(queue_name)
    session.tpc_begin(branch)
    assert [each.body for each in take(consumer, 1)] == ["taken"]
    producer.send("sent")
    return Begun(session, consumer, producer)


def test_a_prepared_branch_happens_at_its_commit(
    connection: Connection, queue_name: str, branch: Xid
) -> None:
    session = begin(connection, queue_name, branch).session
    assert session.tpc_prepare() is True
    assert branch in session.tpc_recover()
    session.tpc_commit()
    assert branch not in session.tpc_recover()
    session.close()
    assert left(connection, queue_name) == ["sent"]


def test_a_prepared_branch_is_undone_by_its_rollback(
    connection: Connection, queue_name: str, branch: Xid
) -> None:
    session, consumer, _ = begin(connection, queue_name, branch)
    assert session.tpc_prepare()
    session.tpc_rollback()
    assert branch not in session.tpc_recover()
    (again,) = take(consumer, 1)
    assert (again.body, again.redelivered) == ("taken", True)
    session.commit()
    session.close()
    assert left(connection, queue_name) == []


@pytest.mark.parametrize("end", ["tpc_commit", "tpc_rollback"])
def test_one_phase_is_enough_for_a_branch_alone(
    connection: Connection, queue_name: str, branch: Xid, end: str
) -> None:
    session = begin(connection, queue_name, branch).session
    getattr(session, end)()
    assert branch not in session.tpc_recover()
    session.close()
    assert left(connection, queue_name) == (["sent"] if end == "tpc_commit" else ["taken"])


def test_a_branch_without_a_part_is_over_when_prepared(
    connection: Connection, queue_name: str, branch: Xid
) -> None:
    session = connection.session(transacted=True)
    session.tpc_begin(branch)
    assert session.tpc_prepare() is False
    assert branch not in session.tpc_recover()
    session.producer(queue_name).send("local again")
    session.commit()
    assert left(connection, queue_name) == ["local again"]


def test_what_is_prepared_waits_for_its_outcome_only(
    connection: Connection, queue_name: str, branch: Xid
) -> None:
    session, consumer, producer = begin(connection, queue_name, branch)
    with pytest.raises(IllegalStateError, match="tpc_"):
        session.commit()
    assert session.tpc_prepare()
    for forbidden in (
        lambda: producer.send("late"),
        lambda: consumer.receive(0),
        lambda: session.tpc_begin(Xid(1, b"other", b"")),
        session.tpc_prepare,
        session.commit,
        session.rollback,
    ):
        with pytest.raises(IllegalStateError):
            forbidden()
    session.tpc_commit()
    session.close()
    assert left(connection, queue_name) == ["sent"]


def test_sessions_that_cannot_have_a_branch_say_so(
    connection: Connection, queue_name: str, branch: Xid
) -> None:
    with pytest.raises(IllegalStateError, match="not transacted"):
        connection.session().tpc_begin(branch)
    session = connection.session(transacted=True)
    with pytest.raises(IllegalStateError, match="begun no branch"):
        session.tpc_prepare()
    session.producer(queue_name).send("local")
    with pytest.raises(IllegalStateError, match="under way"):
        session.tpc_begin(branch)
    session.commit()
    consumer = session.consumer(queue_name)
    take(consumer, 1)
    with pytest.raises(IllegalStateError, match="consumed"):
        session.tpc_begin(branch)
    with pytest.raises(RefusedError):
        session.tpc_commit(branch)


def test_a_closed_session_leaves_what_is_prepared(
    connection: Connection, queue_name: str, branch: Xid
) -> None:
    session = begin(connection, queue_name, branch).session
    assert session.tpc_prepare()
    session.close()
    coordinator = connection.session(transacted=True)
    assert branch in coordinator.tpc_recover()
    coordinator.tpc_rollback(branch)
    assert left(connection, queue_name) == ["taken"]


@pytest.mark.parametrize("end", ["tpc_commit", "tpc_rollback"])
def test_what_is_prepared_survives_a_killed_broker(
    mortal_broker: RunningBroker,
    open_connection: Connect,
    queue_name: str,
    branch: Xid,
    end: str,
) -> None:
    connection = open_connection(f"failover:({mortal_broker.url})")
    session = begin(connection, queue_name, branch).session
    assert session.tpc_prepare()
    mortal_broker.kill()
    mortal_broker.start()
    other = open_connection(mortal_broker.url)
    assert other.session(transacted=True).tpc_recover() == [branch]
    getattr(session, end)(timeout=60)
    assert session.tpc_recover() == []
    session.close()
    assert left(other, queue_name) == (["sent"] if end == "tpc_commit" else ["taken"])


def test_a_branch_that_lost_its_connection_is_rolled_back(
    broker: RunningBroker, open_connection: Connect, queue_name: str, branch: Xid
) -> None:
    relay = Relay(broker.port)
    connection = open_connection(f"failover:({relay.url})")
    session, consumer, producer = begin(connection, queue_name, branch)
    consumer.close()
    relay.cut()
    with pytest.raises(TransactionRolledBackError):
        session.tpc_prepare()
    assert branch not in session.tpc_recover()
    session.tpc_begin(branch)
    producer.send("second attempt")
    session.tpc_commit()
    assert left(connection, queue_name) == ["taken", "second attempt"]
