"""Means of the handlers of requests: the broker, the connection, questions between clients."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from lockkeeper.broker.access.permissions import Right
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.broker.errors import AccessDeniedError, BrokerError, ResourceAllocationError
from lockkeeper.broker.outputs import ForPeer
from lockkeeper.broker.streams.errors import (
    IllegalMessageError,
    InvalidFilterError,
    NoSuchGroupError,
    NoSuchPartitionError,
    NoSuchStreamError,
    StreamsBusyError,
)
from lockkeeper.broker.streams.streams import RETRY_PREFIX, Streams
from lockkeeper.message.destination import topic
from lockkeeper.protocols.rocketmq.codec import IS_ANSWER, IS_ONE_WAY, Command
from lockkeeper.protocols.rocketmq.codes import Request, Response
from lockkeeper.protocols.rocketmq.messages import Host

CLUSTER: Final = "DefaultCluster"
"""The name of the cluster that a broker is in, for tools: RocketMQ's default."""
ASKED_MAX: Final = 1_000
"""So many questions to one client may be unanswered."""
ANSWER_MS_MAX: Final = 10_000
"""How long a client may take to answer what another one asked it, as with RocketMQ."""


class Place(NamedTuple):
    """Address of the broker for routes, and the same for message ids."""

    address: str
    host: Host


class Said(NamedTuple):
    """A command for the peer of a connection, put there by the session of another one.

    One that is `relayed` is a question of that other one's peer.
    """

    command: Command
    relayed: "Relayed | None" = None


class Asked:
    """Tag of what the core answers later: the request, and what makes an answer of it.

    Fields and body of the request are not kept: many of them may wait for long.
    """

    __slots__ = ("answer", "request")

    def __init__(self, request: Command, answer: Callable[[Any], Command]) -> None:
        self.request = bare(request)
        self.answer = answer


@dataclass(slots=True)
class Relayed:
    """A question of one client to another: who asked, and what becomes of the answer."""

    asker: Connection
    request: Command
    answer: Callable[[Command], Command]
    is_over: bool = False

    def tell_asker(self, told: Command) -> None:
        """Answer who asked, once."""
        if not self.is_over:
            self.is_over = True
            tell_peer(self.asker, answering(self.request, told))

    def refuse(self, code: int, remark: str) -> None:
        """Tell who asked that no answer comes."""
        self.tell_asker(answer(code=code, remark=remark))


def bare(request: Command) -> Command:
    """Return what an answer needs to know of a request."""
    return Command(request.code, request.opaque, request.flag, encoding=request.encoding)


class Talk:
    """One connection: its broker, its place, and the questions that its peer has not answered."""

    __slots__ = ("_asked", "_opaque", "broker", "connection", "place")

    def __init__(self, broker: Broker, connection: Connection, place: Place) -> None:
        self.broker = broker
        self.connection = connection
        self.place = place
        self._opaque = 0
        self._asked: dict[int, Relayed] = {}

    def introduce(self) -> None:
        """Announce the connection at its first request. Raises BrokerError."""
        if not self.connection.identifier:
            self.broker.connect(self.connection, f"rocketmq:{self.connection.address}", "")

    def find_client(self, client_id: str) -> Connection | None:
        """Return the newest connection of a client that has told its id in a heartbeat."""
        there = reversed(self.broker.connections.values())
        return next((each for each in there if each.client_id == client_id), None)

    @property
    def streams(self) -> Streams:
        """The streams of the broker."""
        return self.broker.streams

    def require(self, right: Right, stream: str) -> None:
        """Make sure of a right on a stream, which is a topic there. Raises AccessDeniedError.

        What a group gives back it may have again: that needs no right of its own, for who may
        read what the group consumes.
        """
        rights = self.connection.rights
        if rights is None:
            return
        if stream.startswith(RETRY_PREFIX) and right in (Right.READ, Right.WRITE):
            self.require_group(stream[len(RETRY_PREFIX) :])
        else:
            rights.require(right, topic(stream))

    def require_group(self, name: str) -> None:
        """Make sure that the user may read all that a group consumes. Raises AccessDeniedError.

        Groups have no permissions of their own: who may read all of it may be a member, and speak
        for the group.
        """
        rights, group = self.connection.rights, self.streams.groups.find(name)
        if rights is None or group is None:
            return
        consumed = {stream for stream, _ in group.offsets}
        for member in group.members.values():
            consumed.update(member.subscriptions)
        for stream in sorted(consumed):
            if not stream.startswith(RETRY_PREFIX):
                rights.require(Right.READ, topic(stream))

    def ask(self, command: Command, relayed: Relayed) -> Command:
        """Return a question for the peer, whose answer is somebody else's."""
        if len(self._asked) >= ASKED_MAX:
            self._give_up(next(iter(self._asked)))
        self._opaque += 1
        number = command.opaque = self._opaque
        self._asked[number] = relayed
        self.broker.call_after(ANSWER_MS_MAX, lambda: self._give_up(number))
        return command

    def _give_up(self, number: int) -> None:
        """Wait for an answer no longer, if it has not come."""
        relayed = self._asked.pop(number, None)
        if relayed is not None:
            client = self.connection.client_id
            relayed.refuse(
                Response.CONSUME_MSG_TIMEOUT,
                f"the client <{client}> has not answered within {ANSWER_MS_MAX} ms",
            )

    def end(self) -> None:
        """Tell all who asked the peer something that it is gone."""
        gone, self._asked = self._asked, {}
        for relayed in gone.values():
            remark = f"the client <{self.connection.client_id}> has gone before it answered"
            relayed.refuse(Response.CONSUMER_NOT_ONLINE, remark)

    def answered(self, command: Command) -> None:
        """Take an answer of the peer, and give it to who asked."""
        relayed = self._asked.pop(command.opaque, None)
        if relayed is not None:
            relayed.tell_asker(relayed.answer(command))

    def notice(self, code: Request, fields: dict[str, str], body: bytes = b"") -> Command:
        """Return a request to the peer that nobody waits for an answer of."""
        self._opaque += 1
        return Command(code, self._opaque, IS_ONE_WAY, fields, body)


Handler: TypeAlias = Callable[[Talk, Command], Command | None]
"""Carries a request out; returns its answer, or None if that comes later. Raises BrokerError."""


def tell_peer(connection: Connection, command: Command, relayed: Relayed | None = None) -> None:
    """Have another connection's session say something."""
    connection.put(ForPeer(Said(command, relayed)))


def answering(request: Command, answer: Command) -> Command:
    """Return *answer* as that of a request, in the request's encoding."""
    answer.opaque = request.opaque
    answer.flag = IS_ANSWER
    answer.encoding = request.encoding
    return answer


def answer(
    fields: dict[str, str] | None = None,
    body: bytes = b"",
    code: int = Response.SUCCESS,
    remark: str | None = None,
) -> Command:
    """Return an answer."""
    return Command(code, fields=fields or {}, body=body, remark=remark)


_CODES: Final[tuple[tuple[type[BrokerError], Response], ...]] = (
    (NoSuchStreamError, Response.TOPIC_NOT_EXIST),
    (NoSuchPartitionError, Response.INVALID_PARAMETER),
    (NoSuchGroupError, Response.SUBSCRIPTION_GROUP_NOT_EXIST),
    (IllegalMessageError, Response.MESSAGE_ILLEGAL),
    (InvalidFilterError, Response.SUBSCRIPTION_PARSE_FAILED),
    (AccessDeniedError, Response.NO_PERMISSION),
    (StreamsBusyError, Response.SYSTEM_BUSY),
    (ResourceAllocationError, Response.SERVICE_NOT_AVAILABLE),
)


def refusing(error: BrokerError) -> Command:
    """Return the answer that tells of an error of the core."""
    code = next((code for kind, code in _CODES if isinstance(error, kind)), Response.SYSTEM_ERROR)
    return answer(code=code, remark=str(error))
