"""Requests of consumers: pulls, offsets, single messages, and how far groups are.

A pull that finds nothing waits in the core, as long as its client says.
"""

from collections.abc import Callable, Iterable
from typing import Final

from lockkeeper.broker.access.permissions import Right
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.streams.drafts import StreamRecord
from lockkeeper.broker.streams.errors import InvalidFilterError, NoSuchRecordError
from lockkeeper.broker.streams.filters import Filter
from lockkeeper.broker.streams.groups import Group
from lockkeeper.broker.streams.outputs import ReadResult, ReadStatus
from lockkeeper.broker.streams.partition import Partition
from lockkeeper.broker.streams.waiting import Read
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.protocols.rocketmq.bodies import QueueName, encode_json, with_object_map
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Request, Response
from lockkeeper.protocols.rocketmq.convert import stored_message
from lockkeeper.protocols.rocketmq.errors import ProtocolError
from lockkeeper.protocols.rocketmq.fields import Refusal, number, text, truth
from lockkeeper.protocols.rocketmq.filters import SQL, TAG, filter_of
from lockkeeper.protocols.rocketmq.messages import Host, place_of
from lockkeeper.protocols.rocketmq.signatures import CREDENTIALS
from lockkeeper.protocols.rocketmq.talk import (
    Asked,
    Handler,
    Relayed,
    Talk,
    answer,
    bare,
    tell_peer,
)

COMMITS, WAITS, SUBSCRIBES = 1, 2, 4
"""System flags of a pull: it tells an offset, may wait, and brings its subscription."""
WAIT_MS_MAX: Final = 60_000
MESSAGES_MAX, BYTES_MAX = 32, 256 << 10
"""What RocketMQ answers a pull with at most."""
NO_TIME: Final = -1


def pull(talk: Talk, request: Command) -> Command | None:
    """Read messages of a queue for a group."""
    group, topic = text(request, "consumerGroup"), text(request, "topic")
    flags, queue = number(request, "sysFlag", 0), number(request, "queueId")
    stream = talk.streams.find(topic)
    if stream is None:
        raise Refusal(Response.TOPIC_NOT_EXIST, f"topic[{topic}] not exist, apply first please! ")
    talk.require(Right.READ, topic)
    if not 0 <= queue < len(stream.partitions):
        raise Refusal(
            Response.INVALID_PARAMETER,
            f"queueId[{queue}] is illegal, topic:[{topic}] "
            f"topicConfig.readQueueNums:[{len(stream.partitions)}] consumer:"
            f"[/{talk.connection.address.rpartition('//')[2]}]",
        )
    talk.require_group(group)
    talk.streams.groups.open(group)
    wanted = _filter(talk, request, group, topic, flags)
    if flags & COMMITS:
        talk.streams.commit_offset(group, topic, queue, number(request, "commitOffset"))
    offset = number(request, "queueOffset")
    wait = min(number(request, "suspendTimeoutMillis", 0), WAIT_MS_MAX) if flags & WAITS else 0
    read = Read(
        topic,
        queue,
        offset,
        min(max(1, number(request, "maxMsgNums", MESSAGES_MAX)), MESSAGES_MAX),
        BYTES_MAX,
        max(0, wait),
        wanted,
    )
    talk.streams.groups.note_read(group, (topic, queue), talk.connection.client_id, offset)
    talk.streams.read(talk.connection, Asked(request, _pulled(talk, offset)), read)
    return None


def _filter(talk: Talk, request: Command, group: str, topic: str, flags: int) -> Filter:
    """Return the filter that a pull brings, or that its group's members have told."""
    if flags & SUBSCRIBES:
        kind, expression = text(request, "expressionType", TAG), text(request, "subscription", "*")
        try:
            return filter_of(kind, expression)
        except InvalidFilterError as wrong:
            raise Refusal(
                Response.SUBSCRIPTION_PARSE_FAILED,
                f"parse the consumer's subscription failed\n{wrong}",
            ) from wrong
    known = talk.streams.groups.find(group)
    if known is None or not known.members:
        raise Refusal(Response.SUBSCRIPTION_NOT_EXIST, "the consumer's group info not exist")
    subscribed = next(
        (each.subscriptions[topic] for each in known.members.values()
         if topic in each.subscriptions), None
    )  # fmt: skip
    if subscribed is None:
        raise Refusal(Response.SUBSCRIPTION_NOT_EXIST, "the consumer's subscription not exist")
    return filter_of(SQL if subscribed.is_sql else TAG, subscribed.expression)


def _pulled(talk: Talk, offset: int) -> Callable[[ReadResult], Command]:
    """Return what makes the answer of a pull that asked for *offset*."""

    def told(output: ReadResult) -> Command:
        host = talk.place.host
        written = [
            each
            for record in output.records
            if (each := _readable(talk, output.stream, output.partition, record, host))
        ]
        if output.records and not written:
            output = output._replace(status=ReadStatus.NO_MATCH)
        code, remark = _status(output, offset)
        fields = {
            "suggestWhichBrokerId": "0",
            "nextBeginOffset": str(output.next_offset),
            "minOffset": str(output.minimum),
            "maxOffset": str(output.maximum),
            "topicSysFlag": "0",
            "groupSysFlag": "0",
        }
        return answer(fields, b"".join(written), code, remark)

    return told


def _readable(talk: Talk, stream: str, partition: int, record: StreamRecord, host: Host) -> bytes:
    """Return a message for the client; nothing for one of other worlds that has no place in it.

    It is noted and passed over: the group would stand still before it for ever.
    """
    try:
        return stored_message(stream, partition, record, host)
    except (ProtocolError, MalformedMessageError) as error:
        where = f"offset {record.offset} of {stream}, partition {partition}"
        talk.broker.containment.note_error("message", where, error)
        return b""


def _status(output: ReadResult, offset: int) -> tuple[Response, str]:
    """Return RocketMQ's code and word for what a read found."""
    status = output.status
    if status is ReadStatus.FOUND:
        return Response.SUCCESS, "FOUND"
    if status is ReadStatus.NO_MATCH:
        return Response.PULL_RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE"
    if output.maximum == 0:
        moved = Response.PULL_OFFSET_MOVED if offset else Response.PULL_NOT_FOUND
        return moved, "NO_MESSAGE_IN_QUEUE"
    if status is ReadStatus.NOT_YET:
        return Response.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE"
    if status is ReadStatus.TOO_SMALL:
        return Response.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL"
    return Response.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY"


# Offsets


def _partition(talk: Talk, request: Command) -> Partition | None:
    """Return the queue that a request names, if it is there."""
    topic, queue = text(request, "topic"), number(request, "queueId")
    stream = talk.streams.find(topic)
    if stream is None:
        return None
    talk.require(Right.READ, topic)
    return stream.partitions[queue] if 0 <= queue < len(stream.partitions) else None


def maximum(talk: Talk, request: Command) -> Command:
    """Tell the offset behind the last message of a queue."""
    partition = _partition(talk, request)
    return answer({"offset": str(0 if partition is None else partition.maximum)})


def minimum(talk: Talk, request: Command) -> Command:
    """Tell the first offset of a queue that is kept."""
    partition = _partition(talk, request)
    return answer({"offset": str(0 if partition is None else partition.minimum)})


def offset_of_time(talk: Talk, request: Command) -> Command:
    """Tell the first offset that was stored at a time or later."""
    partition = _partition(talk, request)
    time = number(request, "timestamp")
    return answer({"offset": str(0 if partition is None else partition.offset_at(time))})


def earliest(talk: Talk, request: Command) -> Command:
    """Tell when the first message of a queue was stored, in ms since the epoch."""
    partition = _partition(talk, request)
    time = None if partition is None else partition.stored_at_offset(partition.minimum)
    return answer({"timestamp": str(NO_TIME if time is None else time)})


def progress(talk: Talk, request: Command) -> Command:
    """Tell the offset that a group goes on with in a queue."""
    group, topic = text(request, "consumerGroup"), text(request, "topic")
    place = topic, number(request, "queueId")
    partition = _partition(talk, request)
    known = talk.streams.groups.find(group)
    offset = None if known is None else known.offsets.get(place)
    if offset is None and not truth(request, "setZeroIfNotFound", True):
        raise Refusal(
            Response.QUERY_NOT_FOUND, "Not found, do not set to zero, maybe this group boot first"
        )
    if offset is None and partition is not None and partition.maximum and not partition.minimum:
        # A group that is new begins with a topic that still has everything.
        offset = 0
    if offset is None:
        raise Refusal(
            Response.QUERY_NOT_FOUND,
            "Not found, V3_0_6_SNAPSHOT maybe this consumer group boot first",
        )
    return answer({"offset": str(offset)})


def commit(talk: Talk, request: Command) -> Command:
    """Note the offset that a group goes on with in a queue."""
    group, topic = text(request, "consumerGroup"), text(request, "topic")
    talk.require_group(group)
    talk.require(Right.READ, topic)
    if talk.streams.find(topic) is None:
        raise Refusal(Response.TOPIC_NOT_EXIST, f"Topic {topic} not exist!")
    if talk.streams.groups.find(group) is None:
        raise Refusal(Response.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} not exist!")
    queue, offset = number(request, "queueId"), number(request, "commitOffset")
    talk.streams.commit_offset(group, topic, queue, offset)
    return answer()


# Single messages


def view(talk: Talk, request: Command) -> Command:
    """Tell a message by its place."""
    place = number(request, "offset")
    try:
        stream, partition, record = talk.streams.queries.record_at(place)
    except NoSuchRecordError as gone:
        raise Refusal(
            Response.SYSTEM_ERROR, f"can not find message by the offset, {place}"
        ) from gone
    talk.require(Right.READ, stream)
    return answer(body=stored_message(stream, partition, record, talk.place.host))


def query(talk: Talk, request: Command) -> Command:
    """Tell the messages with a key, or a unique one, of a time."""
    topic, key = text(request, "topic"), text(request, "key")
    begin, end = number(request, "beginTimestamp"), number(request, "endTimestamp")
    found: list[tuple[int, StreamRecord]] = []
    if talk.streams.find(topic) is not None:
        talk.require(Right.READ, topic)
        count = max(1, number(request, "maxNum", MESSAGES_MAX))
        found = talk.streams.queries.find_key(topic, key, begin, end, count)
    fields = {"indexLastUpdateTimestamp": str(talk.broker.now), "indexLastUpdatePhyoffset": "0"}
    if not found:
        remark = "can not find message, maybe time range not correct"
        return answer(fields, code=Response.QUERY_NOT_FOUND, remark=remark)
    host = talk.place.host
    body = b"".join(_readable(talk, topic, partition, record, host) for partition, record in found)
    return answer(fields, body)


# How far groups are


def group_progress(talk: Talk, request: Command) -> Command:
    """Tell the offsets of a group and of the queues that it consumes."""
    name, topic = text(request, "consumerGroup"), text(request, "topic", "")
    group = talk.streams.groups.find(name)
    entries = []
    for stream, queue in _places(talk, group, topic):
        partition = talk.streams.get(stream).partition(queue)
        offset = group.offsets.get((stream, queue), -1) if group is not None else -1
        last = partition.stored_at_offset(offset - 1) if offset > 0 else None
        offsets = {
            "brokerOffset": partition.maximum,
            "consumerOffset": offset,
            "lastTimestamp": last or 0,
            "pullOffset": offset,
        }
        entries.append((QueueName(stream, talk.broker.name, queue).told(), offsets))
    return answer(body=with_object_map("offsetTable", entries, {"consumeTps": 0.0}))


def _places(talk: Talk, group: Group | None, topic: str) -> Iterable[tuple[str, int]]:
    """Yield the queues that a group has consumed, of one topic or of all."""
    if group is None:
        return
    names = {topic} if topic else {stream for stream, _ in group.offsets}
    for name in sorted(names):
        stream = talk.streams.find(name)
        if stream is not None:
            yield from ((name, partition.number) for partition in stream.partitions)


def groups_of_topic(talk: Talk, request: Command) -> Command:
    """Tell the groups that consume a topic."""
    topic = text(request, "topic")
    found = [
        group.name
        for group in talk.streams.groups
        if any(topic in member.subscriptions for member in group.members.values())
        or any(stream == topic for stream, _ in group.offsets)
    ]
    return answer(body=encode_json({"groupList": sorted(found)}))


def topics_of_group(talk: Talk, request: Command) -> Command:
    """Tell the topics that a group has consumed."""
    group = talk.streams.groups.find(text(request, "group"))
    found = set() if group is None else {stream for stream, _ in group.offsets}
    return answer(body=encode_json({"topicList": sorted(found)}))


def reset(talk: Talk, request: Command) -> Command:
    """Let a group go on at a time, and tell its members that run."""
    group, topic = text(request, "group"), text(request, "topic")
    time = number(request, "timestamp")
    if talk.streams.find(topic) is None:
        raise Refusal(Response.TOPIC_NOT_EXIST, f"topic {topic} not exist")
    talk.require_group(group)
    talk.require(Right.READ, topic)
    known = talk.streams.groups.find(group)
    if time < 0:
        partitions = talk.streams.get(topic).partitions
        offsets = {each.number: each.maximum for each in partitions}
        for queue, offset in offsets.items():
            talk.streams.commit_offset(group, topic, queue, offset)
    else:
        offsets = talk.streams.reset_offsets(group, topic, time)
    entries = [
        (QueueName(topic, talk.broker.name, queue).told(), offset)
        for queue, offset in offsets.items()
    ]
    body = with_object_map("offsetTable", entries, {})
    fields = {"topic": topic, "group": group, "timestamp": str(time), "isForce": "true"}
    for member in () if known is None else known.members.values():
        told = talk.notice(Request.RESET_CONSUMER_CLIENT_OFFSET, fields, body)
        tell_peer(member.connection, told)
    return answer(body=body)


# What only a client knows


def ask_member(talk: Talk, request: Command) -> Command | None:
    """Hand a question to a member of a group, and its answer back."""
    group, client = text(request, "consumerGroup"), text(request, "clientId")
    talk.require_group(group)
    member = _member_connection(talk, group, client)
    fields = {name: value for name, value in request.fields.items() if name not in CREDENTIALS}
    body = request.body
    if request.code == Request.CONSUME_MESSAGE_DIRECTLY:
        body = _message_named(talk, text(request, "msgId"))
        fields["brokerName"] = talk.broker.name
    question = Command(request.code, fields=fields, body=body)
    tell_peer(member, question, Relayed(talk.connection, bare(request), _as_it_is))
    return None


def _member_connection(talk: Talk, group: str, client: str) -> Connection:
    known = talk.streams.groups.find(group)
    member = None if known is None else known.members.get(client)
    if member is None:
        raise Refusal(Response.SYSTEM_ERROR, f"The Consumer <{group}> <{client}> not online")
    return member.connection


def _message_named(talk: Talk, identifier: str) -> bytes:
    place = place_of(identifier)
    if place is None:
        raise Refusal(Response.SYSTEM_ERROR, f"{identifier[:80]} is no message id")
    try:
        stream, partition, record = talk.streams.queries.record_at(place)
    except NoSuchRecordError as gone:
        raise Refusal(
            Response.SYSTEM_ERROR, f"can not find message by the offset, {place}"
        ) from gone
    talk.require(Right.READ, stream)
    return stored_message(stream, partition, record, talk.place.host)


def _as_it_is(came: Command) -> Command:
    return answer(came.fields, came.body, came.code, came.remark)


HANDLERS: Final[dict[int, Handler]] = {
    Request.PULL_MESSAGE: pull,
    Request.LITE_PULL_MESSAGE: pull,
    Request.GET_MAX_OFFSET: maximum,
    Request.GET_MIN_OFFSET: minimum,
    Request.SEARCH_OFFSET_BY_TIMESTAMP: offset_of_time,
    Request.GET_EARLIEST_MSG_STORETIME: earliest,
    Request.QUERY_CONSUMER_OFFSET: progress,
    Request.UPDATE_CONSUMER_OFFSET: commit,
    Request.VIEW_MESSAGE_BY_ID: view,
    Request.QUERY_MESSAGE: query,
    Request.GET_CONSUME_STATS: group_progress,
    Request.QUERY_TOPIC_CONSUME_BY_WHO: groups_of_topic,
    Request.QUERY_TOPICS_BY_CONSUMER: topics_of_group,
    Request.INVOKE_BROKER_TO_RESET_OFFSET: reset,
    Request.GET_CONSUMER_RUNNING_INFO: ask_member,
    Request.CONSUME_MESSAGE_DIRECTLY: ask_member,
}
