"""Every call of a client comes to an end, whatever the broker does not do."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest
from scripted_peer import ScriptedPeer

from lockkeeper.client import Connection, MessagingError, connect
from lockkeeper.client.blocking.loop import LoopThread
from lockkeeper.client.errors import IllegalStateError, RequestTimedOutError
from lockkeeper.message import openwire

LARGE = b"x" * (8 << 20)
CLOSE_SECONDS, SLACK_SECONDS = 1.0, 5.0


class Aside:
    """Does something in a thread of its own; `outcome` is what it returned or raised."""

    def __init__(self, action: Callable[[], object]) -> None:
        self.outcome: object = None
        self._action = action
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.outcome = self._action()
        except MessagingError as error:
            self.outcome = error

    def ends(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()


def opened(peer: ScriptedPeer, options: str = "", failover: bool = False) -> Connection:
    """Connect to a peer that answers up to the connection's own introduction."""
    serving = Aside(lambda: (peer.shake_hands(), peer.serve(1)))
    url = f"{peer.address}"
    connection = connect(f"failover:({url})?{options}" if failover else f"{url}?{options}")
    assert serving.ends(SLACK_SECONDS)
    return connection


def blocked_sender(connection: Connection, peer: ScriptedPeer) -> Aside:
    """Have a thread send more than a peer reads that does not read."""
    serving = Aside(lambda: peer.serve(2))
    producer = connection.session().producer("Q", persistent=False)
    assert serving.ends(SLACK_SECONDS)
    sender = Aside(lambda: [producer.send(LARGE) for _ in range(8)])
    time.sleep(0.5)
    assert not sender.ends(0)
    return sender


def test_whoever_waits_for_an_event_loop_learns_of_its_end() -> None:
    thread = LoopThread()
    waiting = Aside(lambda: thread.call(asyncio.sleep(3600)))
    time.sleep(0.1)
    thread.stop()
    assert waiting.ends(SLACK_SECONDS)
    assert isinstance(waiting.outcome, IllegalStateError)
    late = Aside(lambda: thread.call(asyncio.sleep(0)))
    assert late.ends(SLACK_SECONDS)
    assert isinstance(late.outcome, IllegalStateError)


@pytest.mark.parametrize("failover", [True, False])
def test_close_returns_while_a_sender_holds_the_connection(failover: bool) -> None:
    with ScriptedPeer() as peer:
        options = f"jms.closeTimeout={CLOSE_SECONDS * 1000:.0f}"
        connection = opened(peer, options, failover)
        sender = blocked_sender(connection, peer)
        began = time.monotonic()
        assert Aside(connection.close).ends(CLOSE_SECONDS + SLACK_SECONDS)
        assert time.monotonic() - began >= CLOSE_SECONDS, "the sender had its time"
        assert sender.ends(SLACK_SECONDS)
        assert isinstance(sender.outcome, MessagingError)


def test_close_returns_while_a_request_is_not_answered() -> None:
    with ScriptedPeer() as peer:
        connection = opened(peer, f"jms.closeTimeout={CLOSE_SECONDS * 1000:.0f}")
        asking = Aside(lambda: connection.session().producer("Q"))
        time.sleep(0.3)
        assert Aside(connection.close).ends(CLOSE_SECONDS + SLACK_SECONDS)
        assert asking.ends(SLACK_SECONDS)
        assert isinstance(asking.outcome, MessagingError)


def test_close_returns_while_no_broker_is_there() -> None:
    with ScriptedPeer() as peer:
        options = f"jms.closeTimeout={CLOSE_SECONDS * 1000:.0f}"
        connection = opened(peer, options, failover=True)
        serving = Aside(lambda: peer.serve(2))
        producer = connection.session(transacted=True).producer("Q")
        assert serving.ends(SLACK_SECONDS)
        peer.hang_up()
    asking = Aside(lambda: producer.send("x"))
    time.sleep(0.3)
    assert Aside(connection.close).ends(CLOSE_SECONDS + SLACK_SECONDS)
    assert asking.ends(SLACK_SECONDS)


def test_a_request_without_an_answer_ends() -> None:
    with ScriptedPeer() as peer:
        connection = opened(peer, "jms.requestTimeout=300&jms.closeTimeout=100")
        with pytest.raises(RequestTimedOutError, match="no answer to ProducerInfo in time"):
            connection.session().producer("Q")
        assert connection._core._pending == {}
        connection.close()


def test_a_send_without_an_answer_ends_where_that_is_asked_for() -> None:
    with ScriptedPeer() as peer:
        connection = opened(peer, "jms.sendTimeout=300&jms.closeTimeout=100")
        serving = Aside(lambda: peer.serve(2))
        producer = connection.session().producer("Q")
        assert serving.ends(SLACK_SECONDS)
        with pytest.raises(RequestTimedOutError, match="no answer to ActiveMQTextMessage in time"):
            producer.send("x")
        connection.close()


def test_others_do_not_wait_for_ever_for_a_sender_that_is_held_up() -> None:
    with ScriptedPeer() as peer:
        connection = opened(peer, "jms.requestTimeout=500&jms.closeTimeout=100")
        sender = blocked_sender(connection, peer)
        session = connection.session()
        with pytest.raises(RequestTimedOutError, match="no answer to ProducerInfo in time"):
            session.producer("Q")
        connection.close()
        assert sender.ends(SLACK_SECONDS)


@pytest.mark.parametrize("size", [1_000, 77_777, 300_000])
def test_after_a_send_that_took_too_long_the_next_frame_is_whole(size: int) -> None:
    with ScriptedPeer() as peer:
        connection = opened(peer, "jms.sendTimeout=300&jms.closeTimeout=100")
        serving = Aside(lambda: peer.serve(2))
        producer = connection.session().producer("Q", persistent=False)
        assert serving.ends(SLACK_SECONDS)
        sent = 0
        with pytest.raises(RequestTimedOutError, match="does not read"):
            while True:
                producer.send(b"x" * size)
                sent += 1
        reading = Aside(lambda: peer.serve(sent))
        assert reading.ends(SLACK_SECONDS)
        Aside(lambda: producer.send("now it reads"))
        found = [peer.read()]
        while isinstance(found[-1], openwire.ActiveMQBytesMessage):
            found.append(peer.read())
        assert isinstance(found[-1], openwire.ActiveMQTextMessage)
        # Of the one that was on its way when time was over a part may have been sent.
        cut = [each for each in found if isinstance(each, openwire.ActiveMQBytesMessage)]
        assert [(each.content or b"")[:1] for each in cut] in ([], [b"x"])
        connection.close()
