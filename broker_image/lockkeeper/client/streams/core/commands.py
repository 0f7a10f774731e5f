"""Requests of the client, as RocketMQ's brokers and name servers understand them."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from lockkeeper.client.streams.core.messages import ReceivedMessage
from lockkeeper.client.streams.core.names import QUEUES_OF_NEW, TEMPLATE
from lockkeeper.client.streams.core.routes import Partition
from lockkeeper.client.streams.core.subscriptions import Subscription
from lockkeeper.protocols.rocketmq.bodies import QueueName, encode_json
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Request
from lockkeeper.protocols.rocketmq.messages import encode_properties

PULLED_AT_ONCE: Final = 32
"""How many messages a pull asks for; brokers answer no more by default."""
PULL_WAIT_MS: Final = 15_000
_WAITS, _SUBSCRIBES = 2, 4


def request(code: Request, body: bytes = b"", **fields: object) -> Command:
    """Return a request with such fields; those that are None are left out."""
    told = {name: _text(value) for name, value in fields.items() if value is not None}
    return Command(code, fields=told, body=body)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def send(
    group: str,
    partition: Partition,
    body: bytes,
    properties: dict[str, str],
    born_at: int,
    *,
    system_flag: int = 0,
    flag: int = 0,
    is_batch: bool = False,
    reconsumed: int = 0,
    reconsumes_max: int | None = None,
) -> Command:
    """Return the request that sends a message, or a batch whose messages have properties."""
    return request(
        Request.SEND_MESSAGE,
        body,
        producerGroup=group,
        topic=partition.stream,
        defaultTopic=TEMPLATE,
        defaultTopicQueueNums=QUEUES_OF_NEW,
        queueId=partition.number,
        sysFlag=system_flag,
        bornTimestamp=born_at,
        flag=flag,
        properties=encode_properties(properties).decode(),
        reconsumeTimes=reconsumed,
        unitMode=False,
        batch=is_batch,
        maxReconsumeTimes=reconsumes_max,
        bname=partition.broker,
    )


def pull(group: str, partition: Partition, offset: int, wanted: Subscription) -> Command:
    """Return the request that reads from an offset, and waits where there is nothing."""
    return request(
        Request.PULL_MESSAGE,
        consumerGroup=group,
        topic=partition.stream,
        queueId=partition.number,
        queueOffset=offset,
        maxMsgNums=PULLED_AT_ONCE,
        sysFlag=_WAITS | _SUBSCRIBES,
        commitOffset=0,
        suspendTimeoutMillis=PULL_WAIT_MS,
        subscription=wanted.expression,
        subVersion=0,
        expressionType=wanted.kind,
        bname=partition.broker,
    )


def offset_request(code: Request, partition: Partition, **fields: object) -> Command:
    """Return a request that asks for an offset of a partition, or tells one."""
    place = {"topic": partition.stream, "queueId": partition.number, "bname": partition.broker}
    return request(code, b"", **place, **fields)


def heartbeat(
    client_id: str, producers: Iterable[str], memberships: Sequence[dict[str, Any]]
) -> Command:
    """Return what a client tells of itself."""
    told = {
        "clientID": client_id,
        "consumerDataSet": list(memberships),
        "producerDataSet": [{"groupName": group} for group in producers],
    }
    return Command(Request.HEART_BEAT, body=encode_json(told))


def filter_check(client_id: str, group: str, wanted: Subscription) -> Command:
    """Return the question whether a subscription can be understood."""
    told = {"clientId": client_id, "group": group, "subscriptionData": wanted.told()}
    return Command(Request.CHECK_CLIENT_CONFIG, body=encode_json(told))


def locking(code: Request, group: str, client_id: str, partitions: Iterable[Partition]) -> Command:
    """Return the request for locks, or that gives them back."""
    queues = [QueueName(*partition).told() for partition in partitions]
    told = {"clientId": client_id, "consumerGroup": group, "mqSet": queues, "onlyThisBroker": False}
    return Command(code, body=encode_json(told))


def send_back(group: str, message: ReceivedMessage, level: int, most: int | None) -> Command:
    """Return the request to have a message again; *level* 0 leaves it to the broker when."""
    return request(
        Request.CONSUMER_SEND_MSG_BACK,
        offset=message.place,
        group=group,
        delayLevel=level,
        originMsgId=message.message_id,
        originTopic=message.partition.stream,
        unitMode=False,
        maxReconsumeTimes=most,
        bname=message.partition.broker,
    )
