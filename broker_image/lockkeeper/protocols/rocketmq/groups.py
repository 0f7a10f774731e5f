"""Requests of groups' members: heartbeats, who else there is, locks, messages to have again.

A heartbeat tells everything of a client at once: the groups that it produces for, and those that
it consumes in, with its subscriptions.
"""

from typing import Any, Final

from lockkeeper.broker.access.permissions import Right
from lockkeeper.broker.errors import AccessDeniedError
from lockkeeper.broker.streams.errors import NoSuchRecordError
from lockkeeper.broker.streams.groups import Group, Member, Model, Subscribed
from lockkeeper.broker.streams.outputs import Done, Locked
from lockkeeper.broker.streams.streams import FIRST_RETRY_LEVEL, RETRY_PREFIX
from lockkeeper.protocols.rocketmq.bodies import (
    LockRequest,
    Membership,
    QueueName,
    encode_json,
    read_heartbeat,
    read_lock_request,
    read_object,
)
from lockkeeper.protocols.rocketmq.codec import LANGUAGES, Command
from lockkeeper.protocols.rocketmq.codes import Request, Response
from lockkeeper.protocols.rocketmq.fields import Refusal, number, text
from lockkeeper.protocols.rocketmq.filters import SQL, TAG
from lockkeeper.protocols.rocketmq.messages import message_id
from lockkeeper.protocols.rocketmq.sending import LEVEL, RECONSUMED_MAX
from lockkeeper.protocols.rocketmq.talk import Asked, Handler, Talk, answer
from lockkeeper.protocols.rocketmq.topics import make_for_group

INNER_PRODUCER: Final = "CLIENT_INNER_PRODUCER"
"""The producer group that every client is in, whether it produces or not."""
ORIGIN: Final = "ORIGIN_MESSAGE_ID"
"""The property with the id that a message had before a group gave it back at first."""
BEGINS: Final = {
    "CONSUME_FROM_FIRST_OFFSET": "first",
    "CONSUME_FROM_LAST_OFFSET": "last",
    "CONSUME_FROM_TIMESTAMP": "timestamp",
}


def heartbeat(talk: Talk, request: Command) -> Command:
    """Hear of a client: who it is, for whom it produces, and in which groups it consumes."""
    told = read_heartbeat(request.body)
    connection = talk.connection
    connection.client_id = told.client_id
    for group in told.producer_groups:
        talk.broker.add_producer(connection, group, None)
        talk.streams.producer_heartbeat(connection, group, told.client_id)
    for membership in told.memberships:
        _check_reading(talk, membership)
        _require_own(talk, membership.group, told.client_id)
        talk.streams.groups.heartbeat(membership.group, _member(talk, told.client_id, membership))
        if membership.model == "CLUSTERING":
            # Its members look for the route at once.
            make_for_group(talk, RETRY_PREFIX + membership.group)
    return answer()


def _check_reading(talk: Talk, membership: Membership) -> None:
    talk.require_group(membership.group)
    for subscription in membership.subscriptions:
        talk.require(Right.READ, subscription.topic)


def _member(talk: Talk, client_id: str, membership: Membership) -> Member:
    return Member(
        client_id,
        talk.connection,
        {
            each.topic: Subscribed(each.expression, each.kind == SQL)
            for each in membership.subscriptions
        },
        is_push=membership.is_push,
        model=Model.BROADCASTING if membership.model == "BROADCASTING" else Model.CLUSTERING,
        begins=BEGINS.get(membership.begins, "last"),
    )


def unregister(talk: Talk, request: Command) -> Command:
    """Let a client leave the groups that it names."""
    client_id = text(request, "clientID")
    producers, consumers = (text(request, name, "") for name in ("producerGroup", "consumerGroup"))
    if producers:
        talk.streams.producer_leaves(talk.connection, producers)
        talk.broker.remove_producer(talk.connection, producers)
    if consumers:
        _require_own(talk, consumers, client_id)
        talk.streams.groups.leave(consumers, client_id)
    return answer()


def _require_own(talk: Talk, group: str, client_id: str) -> None:
    """Let nobody speak for another user's client. Raises AccessDeniedError.

    A client that comes back may be here before its former connection is known to be over.
    """
    known = talk.streams.groups.find(group)
    member = None if known is None else known.members.get(client_id)
    if talk.connection.rights is None or member is None:
        return
    if member.connection.user_name != talk.connection.user_name:
        raise AccessDeniedError(f"{client_id} is another user's member of {group}")


def members(talk: Talk, request: Command) -> Command:
    """Tell the client ids of a group's members."""
    name = text(request, "consumerGroup")
    group = talk.streams.groups.find(name)
    if group is None or not group.members:
        raise Refusal(Response.SYSTEM_ERROR, f"no consumer for this group, {name}")
    return answer(body=encode_json({"consumerIdList": sorted(group.members)}))


def consumer_connections(talk: Talk, request: Command) -> Command:
    """Tell who is in a consumer group, and what it subscribes to."""
    name = text(request, "consumerGroup")
    group = talk.streams.groups.find(name)
    if group is None or not group.members:
        raise Refusal(Response.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online")
    one = next(iter(group.members.values()))
    begins = next(word for word, meaning in BEGINS.items() if meaning == one.begins)
    told = {
        "connectionSet": [
            _connection(each.client_id, each.connection.address) for each in group.members.values()
        ],
        "consumeFromWhere": begins,
        "consumeType": "CONSUME_PASSIVELY" if one.is_push else "CONSUME_ACTIVELY",
        "messageModel": one.model.name,
        "subscriptionTable": _subscriptions(group),
    }
    return answer(body=encode_json(told))


def _subscriptions(group: Group) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for member in group.members.values():
        for topic, subscribed in member.subscriptions.items():
            tags = [tag.strip() for tag in subscribed.expression.split("||")]
            is_plain = subscribed.is_sql or subscribed.expression == "*"
            found[topic] = {
                "classFilterMode": False,
                "codeSet": [],
                "expressionType": SQL if subscribed.is_sql else TAG,
                "subString": subscribed.expression,
                "subVersion": 0,
                "tagsSet": [] if is_plain else tags,
                "topic": topic,
            }
    return found


def _connection(client_id: str, address: str) -> dict[str, Any]:
    return {
        "clientAddr": address.rpartition("//")[2],
        "clientId": client_id,
        "language": LANGUAGES[0],
        "version": 0,
    }


def producer_connections(talk: Talk, request: Command) -> Command:
    """Tell who is in a producer group."""
    group = text(request, "producerGroup")
    found = [
        _connection(each.client_id, each.address)
        for each in talk.broker.connections.values()
        if group in each.producers
    ]
    if not found:
        raise Refusal(Response.SYSTEM_ERROR, f"the producer group[{group}] not exist")
    return answer(body=encode_json({"connectionSet": found}))


# Locks


def lock(talk: Talk, request: Command) -> Command | None:
    """Let a member hold queues that nobody else holds."""
    told = read_lock_request(request.body)
    _check_locking(talk, told)
    places = [(each.topic, each.queue) for each in told.queues]
    name = talk.broker.name

    def held(output: Locked) -> Command:
        queues = [QueueName(topic, name, queue).told() for topic, queue in output.partitions]
        return answer(body=encode_json({"lockOKMQSet": queues}))

    tag = Asked(request, held)
    talk.streams.groups.lock(talk.connection, tag, told.group, told.client_id, places)
    return None


def _check_locking(talk: Talk, told: LockRequest) -> None:
    talk.require_group(told.group)
    _require_own(talk, told.group, told.client_id)
    for topic in {each.topic for each in told.queues}:
        talk.require(Right.READ, topic)


def unlock(talk: Talk, request: Command) -> Command:
    """Take queues back from a member."""
    told = read_lock_request(request.body)
    _check_locking(talk, told)
    places = [(each.topic, each.queue) for each in told.queues]
    talk.streams.groups.unlock(told.group, told.client_id, places)
    return answer()


# What a group could not consume


def send_back(talk: Talk, request: Command) -> Command | None:
    """Have a message come again, later."""
    group, place = text(request, "group"), number(request, "offset")
    talk.require_group(group)
    talk.streams.groups.open(group)
    try:
        stream, partition, record = talk.streams.queries.record_at(place)
    except NoSuchRecordError as gone:
        raise Refusal(Response.SYSTEM_ERROR, f"look message by offset failed, {place}") from gone
    talk.require(Right.READ, stream)
    draft = record.draft
    most = number(request, "maxReconsumeTimes", RECONSUMED_MAX)
    level = number(request, "delayLevel", 0)
    if draft.reconsumed >= most:
        level = -1
    elif level == 0:
        level = FIRST_RETRY_LEVEL + draft.reconsumed
    origin = draft.properties.get(ORIGIN, message_id(talk.place.host, place))
    properties = {LEVEL: str(max(0, level)), ORIGIN: origin, "WAIT": "false"}
    place_of_it = (stream, partition, record.offset)
    tag = Asked(request, _done)
    talk.streams.send_back(talk.connection, tag, group, *place_of_it, level, most, properties)
    return None


def _done(output: Done) -> Command:
    return answer()


# Groups as tools see them


def _config(name: str) -> dict[str, Any]:
    return {
        "attributes": {},
        "brokerId": 0,
        "consumeBroadcastEnable": True,
        "consumeEnable": True,
        "consumeFromMinEnable": True,
        "consumeMessageOrderly": False,
        "consumeTimeoutMinute": 15,
        "groupName": name,
        "groupSysFlag": 0,
        "notifyConsumerIdsChangedEnable": True,
        "retryMaxTimes": RECONSUMED_MAX,
        "retryQueueNums": 1,
        "whichBrokerWhenConsumeSlowly": 1,
    }


def make_group(talk: Talk, request: Command) -> Command:
    """Make a group."""
    told = read_object(request.body)
    name = told.get("groupName")
    if not isinstance(name, str) or not name:
        raise Refusal(Response.INVALID_PARAMETER, "The specified group is blank.")
    talk.require(Right.CREATE, RETRY_PREFIX + name)
    talk.streams.groups.open(name)
    make_for_group(talk, RETRY_PREFIX + name)
    return answer()


def group_config(talk: Talk, request: Command) -> Command:
    """Tell how a group consumes."""
    name = text(request, "group")
    if talk.streams.groups.find(name) is None:
        raise Refusal(
            Response.SUBSCRIPTION_GROUP_NOT_EXIST, f"No group in this broker. group: {name}"
        )
    return answer(body=encode_json(_config(name)))


def all_groups(talk: Talk, request: Command) -> Command:
    """Tell that of all groups."""
    told = {
        "dataVersion": {"counter": 0, "stateVersion": 0, "timestamp": talk.broker.now},
        "forbiddenTable": {},
        "subscriptionGroupTable": {each.name: _config(each.name) for each in talk.streams.groups},
    }
    return answer(body=encode_json(told))


def delete_group(talk: Talk, request: Command) -> Command:
    """Forget a group that nobody is in."""
    name = text(request, "groupName")
    talk.require(Right.REMOVE, RETRY_PREFIX + name)
    talk.streams.groups.delete(name)
    return answer()


HANDLERS: Final[dict[int, Handler]] = {
    Request.HEART_BEAT: heartbeat,
    Request.UNREGISTER_CLIENT: unregister,
    Request.GET_CONSUMER_LIST_BY_GROUP: members,
    Request.GET_CONSUMER_CONNECTION_LIST: consumer_connections,
    Request.GET_PRODUCER_CONNECTION_LIST: producer_connections,
    Request.LOCK_BATCH_MQ: lock,
    Request.UNLOCK_BATCH_MQ: unlock,
    Request.CONSUMER_SEND_MSG_BACK: send_back,
    Request.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: make_group,
    Request.GET_SUBSCRIPTIONGROUP_CONFIG: group_config,
    Request.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: all_groups,
    Request.DELETE_SUBSCRIPTIONGROUP: delete_group,
}
