"""Names of topics and where they are: what a name server tells, and what tools change.

A topic is a stream, its queues are the partitions. Name server and broker are one: every route
leads to the listener itself.
"""

import re
from dataclasses import replace
from typing import Any, Final

from lockkeeper.broker.access.permissions import Right
from lockkeeper.broker.streams.delays import DELAY_STREAM
from lockkeeper.broker.streams.stream import Stream
from lockkeeper.broker.streams.transactions import UNDECIDED_STREAM
from lockkeeper.protocols.rocketmq.bodies import (
    QueueName,
    encode_json,
    read_object,
    read_subscription,
    with_object_map,
)
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Request, Response
from lockkeeper.protocols.rocketmq.fields import Refusal, number, text
from lockkeeper.protocols.rocketmq.filters import filter_of
from lockkeeper.protocols.rocketmq.talk import CLUSTER, Handler, Talk, answer

TEMPLATE: Final = "TBW102"
"""The topic whose route producers take for one that is not there yet."""
TEMPLATE_QUEUES: Final = 8
READABLE, WRITABLE, INHERITED = 4, 2, 1
BOTH: Final = READABLE | WRITABLE
NOT_TO_BE_SENT_TO: Final = frozenset(
    (
        DELAY_STREAM,
        UNDECIDED_STREAM,
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    )
)
"""Topics of the broker's own."""
SYSTEM: Final = NOT_TO_BE_SENT_TO | {TEMPLATE, "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC"}
NAME_CHARACTERS_MAX: Final = 127
_ILLEGAL: Final = re.compile(r"[^%|a-zA-Z0-9_-]")


def check_topic(name: str) -> None:
    """Raise Refusal for a name that no topic may have."""
    if not name.strip():
        raise Refusal(Response.INVALID_PARAMETER, "The specified topic is blank.")
    if _ILLEGAL.search(name):
        raise Refusal(
            Response.INVALID_PARAMETER,
            "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$",
        )
    if len(name) > NAME_CHARACTERS_MAX:
        raise Refusal(
            Response.INVALID_PARAMETER,
            "The specified topic is longer than topic max length.\n"
            f"It has {len(name)} characters, more than {NAME_CHARACTERS_MAX}.",
        )


def make_for_sending(talk: Talk, name: str, queues: int) -> Stream:
    """Return the topic that is sent to, made with so many queues if it may be. Raises Refusal."""
    stream = talk.streams.find(name)
    if stream is not None:
        return stream
    settings = talk.streams.settings
    if not settings.create_on_first_use:
        raise Refusal(Response.TOPIC_NOT_EXIST, f"topic[{name}] not exist, apply first please!")
    talk.require(Right.CREATE, name)
    count = max(1, min(queues, TEMPLATE_QUEUES))
    return talk.streams.declare(name, replace(settings.defaults, partitions=count))


def make_for_group(talk: Talk, name: str) -> Stream:
    """Return a topic for what a group gives back, or gives up: its members need no right for it."""
    stream = talk.streams.find(name)
    if stream is None:
        stream = talk.streams.declare(name, replace(talk.streams.settings.defaults, partitions=1))
    return stream


def _missing(name: str) -> Refusal:
    return Refusal(
        Response.TOPIC_NOT_EXIST, f"No topic route info in name server for the topic: {name}"
    )


# A name server's part


def route(talk: Talk, request: Command) -> Command:
    """Tell where a topic is."""
    name = text(request, "topic")
    stream = talk.streams.find(name)
    if stream is not None:
        queues, permission = len(stream.partitions), BOTH
    elif name == TEMPLATE and talk.streams.settings.create_on_first_use:
        queues, permission = TEMPLATE_QUEUES, BOTH | INHERITED
    else:
        raise _missing(name)
    told = _route(talk, queues, permission)
    if stream is not None and stream.settings.ordered:
        told["orderTopicConf"] = f"{talk.broker.name}:{queues}"
    return answer(body=encode_json(told))


def blind_route(talk: Talk, request: Command) -> Command:
    """Tell that any topic is here, whether there is one or not.

    Clients take a refusal for a missing topic, and do not say what was refused. So they are led to
    a request whose refusal they tell of, and learn nothing.
    """
    return answer(body=encode_json(_route(talk, 1, BOTH)))


def _route(talk: Talk, queues: int, permission: int) -> dict[str, Any]:
    return {
        "brokerDatas": [_broker_data(talk)],
        "filterServerTable": {},
        "queueDatas": [
            {
                "brokerName": talk.broker.name,
                "perm": permission,
                "readQueueNums": queues,
                "topicSysFlag": 0,
                "writeQueueNums": queues,
            }
        ],
    }


def _broker_data(talk: Talk) -> dict[str, Any]:
    return {
        "brokerAddrs": {"0": talk.place.address},
        "brokerName": talk.broker.name,
        "cluster": CLUSTER,
        "enableActingMaster": False,
    }


def cluster(talk: Talk, request: Command) -> Command:
    """Tell which brokers there are: this one."""
    told = {
        "brokerAddrTable": {talk.broker.name: _broker_data(talk)},
        "clusterAddrTable": {CLUSTER: [talk.broker.name]},
    }
    return answer(body=encode_json(told))


def all_topics(talk: Talk, request: Command) -> Command:
    """Tell the names of all topics."""
    names = sorted({stream.name for stream in talk.streams} | {TEMPLATE})
    return answer(body=encode_json({"topicList": names}))


# What tools ask of a broker


def create_topic(talk: Talk, request: Command) -> Command:
    """Make a topic, or give one more queues."""
    name, queues = text(request, "topic"), number(request, "writeQueueNums")
    check_topic(name)
    if name in SYSTEM:
        raise Refusal(
            Response.INVALID_PARAMETER, f"The topic[{name}] is conflict with system topic."
        )
    if number(request, "perm", BOTH) & BOTH != BOTH:
        raise Refusal(
            Response.INVALID_PARAMETER,
            f"the topic[{name}] cannot be for reading or writing alone; use the permissions of "
            "the Broker's users",
        )
    talk.require(Right.CREATE, name)
    known = talk.streams.find(name)
    settings = talk.streams.settings.defaults if known is None else known.settings
    queues = max(queues, number(request, "readQueueNums", queues))
    ordered = request.fields.get("order", "false").lower() == "true"
    talk.streams.declare(name, replace(settings, partitions=queues, ordered=ordered))
    return answer()


def delete_topic(talk: Talk, request: Command) -> Command:
    """Delete a topic with its messages."""
    name = text(request, "topic")
    if not name.strip():
        raise Refusal(Response.INVALID_PARAMETER, "The specified topic is blank.")
    if name in SYSTEM:
        raise Refusal(
            Response.INVALID_PARAMETER, f"The topic[{name}] is conflict with system topic."
        )
    talk.require(Right.REMOVE, name)
    if talk.streams.find(name) is not None:
        talk.streams.remove(name)
    return answer()


def forget_topic(talk: Talk, request: Command) -> Command:
    """Agree to forget where a topic is: its broker has deleted it, or knows better."""
    return answer()


def _config(stream: Stream) -> dict[str, Any]:
    queues = len(stream.partitions)
    return {
        "attributes": {},
        "order": stream.settings.ordered,
        "perm": BOTH,
        "readQueueNums": queues,
        "topicFilterType": "SINGLE_TAG",
        "topicName": stream.name,
        "topicSysFlag": 0,
        "writeQueueNums": queues,
    }


def described(stream: Stream) -> str:
    """Return a topic's configuration in RocketMQ's words."""
    queues = len(stream.partitions)
    order = str(stream.settings.ordered).lower()
    return (
        f"TopicConfig [topicName={stream.name}, readQueueNums={queues}, "
        f"writeQueueNums={queues}, perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, "
        f"order={order}, attributes={{}}]"
    )


def topic_config(talk: Talk, request: Command) -> Command:
    """Tell how many queues a topic has, and whether it is ordered."""
    name = text(request, "topic")
    stream = talk.streams.find(name)
    if stream is None:
        raise Refusal(Response.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {name}")
    return answer(body=encode_json(_config(stream)))


def all_configs(talk: Talk, request: Command) -> Command:
    """Tell that of all topics."""
    told = {
        "dataVersion": {"counter": 0, "stateVersion": 0, "timestamp": talk.broker.now},
        "topicConfigTable": {stream.name: _config(stream) for stream in talk.streams},
    }
    return answer(body=encode_json(told))


def topic_stats(talk: Talk, request: Command) -> Command:
    """Tell the offsets of a topic's queues."""
    name = text(request, "topic")
    stream = talk.streams.find(name)
    if stream is None:
        raise Refusal(Response.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
    entries = []
    for partition in stream.partitions:
        updated = partition.stored_at_offset(partition.maximum - 1)
        offsets = {
            "lastUpdateTimestamp": updated or 0,
            "maxOffset": partition.maximum,
            "minOffset": partition.minimum,
        }
        entries.append((QueueName(name, talk.broker.name, partition.number).told(), offsets))
    return answer(body=with_object_map("offsetTable", entries, {"topicPutTps": 0.0}))


def runtime_info(talk: Talk, request: Command) -> Command:
    """Tell something of the broker to tools that list brokers."""
    table = {
        "brokerVersion": str(request.version),
        "brokerVersionDesc": "Lockkeeper",
        "bootTimestamp": "0",
        "pullThreadPoolQueueSize": "0",
        "sendThreadPoolQueueSize": "0",
    }
    return answer(body=encode_json({"table": table}))


def broker_config(talk: Talk, request: Command) -> Command:
    """Tell the broker's names as properties."""
    told = f"brokerName={talk.broker.name}\nbrokerClusterName={CLUSTER}\nbrokerId=0\n"
    return answer({"version": '{"counter":0,"stateVersion":0,"timestamp":0}'}, told.encode())


def check_client(talk: Talk, request: Command) -> Command:
    """Tell whether a subscription's expression is one."""
    subscription = read_subscription(read_object(request.body).get("subscriptionData"))
    filter_of(subscription.kind, subscription.expression)
    return answer()


HANDLERS: Final[dict[int, Handler]] = {
    Request.GET_ROUTEINFO_BY_TOPIC: route,
    Request.GET_BROKER_CLUSTER_INFO: cluster,
    Request.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: all_topics,
    Request.GET_TOPICS_BY_CLUSTER: all_topics,
    Request.UPDATE_AND_CREATE_TOPIC: create_topic,
    Request.DELETE_TOPIC_IN_BROKER: delete_topic,
    Request.DELETE_TOPIC_IN_NAMESRV: forget_topic,
    Request.GET_TOPIC_CONFIG: topic_config,
    Request.GET_ALL_TOPIC_CONFIG: all_configs,
    Request.GET_TOPIC_STATS_INFO: topic_stats,
    Request.GET_BROKER_RUNTIME_INFO: runtime_info,
    Request.GET_BROKER_CONFIG: broker_config,
    Request.CHECK_CLIENT_CONFIG: check_client,
}
