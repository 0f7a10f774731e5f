"""Requests of producers: messages and batches, halves of transactions and their outcome, replies.

Fields of a message come by their names, or by the letters of the second version, which are
shorter.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from lockkeeper.broker.access.permissions import Right
from lockkeeper.broker.streams.drafts import UNIQUE_KEY, Draft
from lockkeeper.broker.streams.outputs import Appended, Done, HalfStored
from lockkeeper.broker.streams.stream import Stream
from lockkeeper.broker.streams.streams import DEAD_LETTER_PREFIX, RETRY_PREFIX
from lockkeeper.broker.streams.transactions import Outcome
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Request, Response
from lockkeeper.protocols.rocketmq.fields import Refusal, integer, number, text, truth
from lockkeeper.protocols.rocketmq.messages import (
    COMMITTED,
    PROPERTIES_BYTES_MAX,
    ROLLED_BACK,
    TRANSACTION,
    decode_batch,
    decode_properties,
    encode_properties,
    message_id,
)
from lockkeeper.protocols.rocketmq.talk import (
    CLUSTER,
    Asked,
    Handler,
    Relayed,
    Talk,
    answer,
    bare,
    tell_peer,
)
from lockkeeper.protocols.rocketmq.topics import (
    NOT_TO_BE_SENT_TO,
    check_topic,
    described,
    make_for_group,
    make_for_sending,
)

LETTERS: Final = {
    "producerGroup": "a", "topic": "b", "defaultTopic": "c", "defaultTopicQueueNums": "d",
    "queueId": "e", "sysFlag": "f", "bornTimestamp": "g", "flag": "h", "properties": "i",
    "reconsumeTimes": "j", "unitMode": "k", "maxReconsumeTimes": "l", "batch": "m", "bname": "n",
}  # fmt: skip
"""Fields of the second version of a send, by their names in the first."""
BRIEF: Final = frozenset((Request.SEND_MESSAGE_V2, Request.SEND_REPLY_MESSAGE_V2))
SENT_BRIEFLY: Final = frozenset((*BRIEF, Request.SEND_BATCH_MESSAGE))

LEVEL, DELIVER_AT = "DELAY", "TIMER_DELIVER_MS"
DELAY_MS, DELAY_SECONDS = "TIMER_DELAY_MS", "TIMER_DELAY_SEC"
PRODUCER_GROUP, IMMUNITY = "PGROUP", "CHECK_IMMUNITY_TIME_IN_SECONDS"
IS_HALF, TRANSACTION_ID = "TRAN_MSG", "__transactionId__"
REPLY_TO, PUSHED_AT = "REPLY_TO_CLIENT", "PUSH_REPLY_TIME"
REPLIES: Final = f"{CLUSTER}_REPLY_TOPIC"
"""The topic that replies are sent to, whoever asked: nothing is in it."""
REGION: Final = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
DELAY_MS_MAX: Final = 3 * 86_400_000
"""How far in the future a message may be delivered: RocketMQ's timerMaxDelaySec."""
RECONSUMED_MAX: Final = 16
MESSAGE_BYTES_MAX: Final = 4 << 20
_PROPERTIES_SENT_BYTES_MAX: Final = PROPERTIES_BYTES_MAX - 512


@dataclass(slots=True)
class Sent:
    """A message or a batch as its request tells of it."""

    group: str
    topic: str
    queue: int
    system_flag: int
    born_at: int
    flag: int
    properties: dict[str, str]
    reconsumed: int
    reconsume_max: int
    default_queues: int
    is_batch: bool

    @property
    def is_half(self) -> bool:
        """Tell whether nobody is to see it before its producer decides."""
        return not self.is_batch and self.properties.get(IS_HALF) == "true"


def read_sent(request: Command) -> Sent:
    """Return what a request tells of its message. Raises Refusal, ProtocolError."""
    if request.code in SENT_BRIEFLY and "b" in request.fields:
        named = {name: request.fields.get(letter) for name, letter in LETTERS.items()}
        fields = {name: value for name, value in named.items() if value is not None}
        request = replace(request, fields=fields)
    told = text(request, "properties", "")
    if len(told.encode("utf-8", "replace")) > PROPERTIES_BYTES_MAX:
        raise Refusal(Response.MESSAGE_ILLEGAL, illegal(MESSAGE_BYTES_MAX))
    return Sent(
        text(request, "producerGroup"),
        text(request, "topic"),
        number(request, "queueId"),
        integer(request, "sysFlag", 0) & 0x7FFFFFFF,
        number(request, "bornTimestamp", 0),
        integer(request, "flag", 0),
        decode_properties(told),
        max(0, integer(request, "reconsumeTimes", 0)),
        number(request, "maxReconsumeTimes", RECONSUMED_MAX),
        number(request, "defaultTopicQueueNums", 4),
        truth(request, "batch") or request.code == Request.SEND_BATCH_MESSAGE,
    )


def illegal(limit: int) -> str:
    """Return RocketMQ's words for a message that is too large."""
    return (
        "the message is illegal, maybe msg body or properties length not matched. msg body length "
        f"limit {limit}B, msg properties length limit 32KB."
    )


def send(talk: Talk, request: Command) -> Command | None:
    """Add a message or a batch to a queue of a topic."""
    sent = read_sent(request)
    limit = talk.streams.settings.limits.message_bytes
    if len(request.body) > limit:
        raise Refusal(Response.MESSAGE_ILLEGAL, illegal(limit))
    _route(talk, sent)
    level, at = _delay(talk, sent)
    if level:
        sent.properties[LEVEL] = str(level)
    drafts = _drafts(talk, sent, request.body)
    if any(map(_is_too_long, drafts)):
        raise Refusal(Response.MESSAGE_ILLEGAL, illegal(limit))
    tag = Asked(request, _appended(talk, sent, drafts))
    if sent.is_half:
        _begin_transaction(talk, sent, drafts[0], tag)
        return None
    talk.streams.append(talk.connection, tag, sent.topic, sent.queue, drafts, level, at)
    return None


def _route(talk: Talk, sent: Sent) -> None:
    """Have the topic be there, and the queue be one of its. Raises Refusal, BrokerError."""
    check_topic(sent.topic)
    if sent.topic in NOT_TO_BE_SENT_TO:
        raise Refusal(
            Response.NO_PERMISSION, f"Sending message to topic[{sent.topic}] is forbidden."
        )
    talk.require(Right.WRITE, sent.topic)
    if sent.topic.startswith(RETRY_PREFIX):
        stream = _route_retry(talk, sent)
    else:
        stream = make_for_sending(talk, sent.topic, sent.default_queues)
    if sent.queue >= len(stream.partitions):
        raise Refusal(
            Response.INVALID_PARAMETER,
            f"request queueId[{sent.queue}] is illegal, {described(stream)} Producer: "
            f"{_host_of(talk)}",
        )


def _route_retry(talk: Talk, sent: Sent) -> Stream:
    """Send what a group gives back too often to its dead letters, as clients of 4.9 rely on.

    Returns the topic.
    """
    name = sent.topic[len(RETRY_PREFIX) :]
    group = talk.streams.groups.open(name)
    is_orderly = any(talk.streams.groups.holder(name, place) for place in group.locks)
    if sent.reconsumed > sent.reconsume_max or is_orderly:
        # A group that consumes in order has tried often enough by itself.
        sent.topic, sent.queue = DEAD_LETTER_PREFIX + name, 0
        sent.properties[LEVEL] = "-1"
    return make_for_group(talk, sent.topic)


def _drafts(talk: Talk, sent: Sent, body: bytes) -> list[Draft]:
    """Return the messages of a request, each on its own."""
    host = _host_of(talk)
    if not sent.is_batch:
        properties = {**sent.properties, **REGION, "CLUSTER": CLUSTER}
        if UNIQUE_KEY not in properties:
            properties[UNIQUE_KEY] = f"{next(talk.broker.sequences):032X}"
        if sent.is_half:
            properties[TRANSACTION_ID] = properties[UNIQUE_KEY]
        return [
            Draft(
                body, properties, sent.flag, sent.system_flag, sent.born_at, host, sent.reconsumed
            )
        ]
    return [
        Draft(
            each.body,
            {**each.properties, **REGION, "CLUSTER": CLUSTER},
            each.flag,
            sent.system_flag,
            sent.born_at,
            host,
        )
        for each in decode_batch(body)
    ]


def _is_too_long(draft: Draft) -> bool:
    """Tell whether properties leave no room for those that a retry adds."""
    properties = draft.properties
    characters = sum(map(len, properties)) + sum(map(len, properties.values()))
    # A character has up to four bytes: most messages need not be encoded for this.
    if 4 * characters + 2 * len(properties) <= _PROPERTIES_SENT_BYTES_MAX:
        return False
    return len(encode_properties(properties)) > _PROPERTIES_SENT_BYTES_MAX


def _host_of(talk: Talk) -> str:
    return talk.connection.address.rpartition("//")[2]


def _delay(talk: Talk, sent: Sent) -> tuple[int, int]:
    """Return the level of a message's delay, and when it is due (ms); 0 for none."""
    properties = sent.properties
    now = talk.broker.now
    try:
        level = int(properties.get(LEVEL, "0"))
        if DELIVER_AT in properties:
            due = int(properties[DELIVER_AT])
        elif DELAY_MS in properties:
            due = now + int(properties[DELAY_MS])
        elif DELAY_SECONDS in properties:
            due = now + 1000 * int(properties[DELAY_SECONDS])
        else:
            due = 0
    except ValueError as wrong:
        raise Refusal(Response.MESSAGE_ILLEGAL, f"a delay that is no number: {wrong}") from wrong
    if due - now > DELAY_MS_MAX:
        raise Refusal(
            Response.MESSAGE_ILLEGAL,
            "timer message illegal, the delay time should not be bigger than the max delay "
            f"{DELAY_MS_MAX}ms; or if set del msg, the delay time should be bigger than the "
            "current time",
        )
    return max(0, min(level, len(talk.streams.settings.delay_levels))), max(0, due)


def _appended(
    talk: Talk, sent: Sent, drafts: list[Draft]
) -> Callable[[Appended | HalfStored], Command]:
    """Return what makes the answer of a send."""

    def told(output: Appended | HalfStored) -> Command:
        host = talk.place.host
        fields = dict(REGION)
        if isinstance(output, HalfStored):
            fields["queueId"] = str(max(0, sent.queue))
            fields["queueOffset"] = str(output.number)
            fields["msgId"] = message_id(host, output.location)
        else:
            fields["queueId"] = str(output.partition)
            fields["queueOffset"] = str(output.offset)
            fields["msgId"] = ",".join(message_id(host, each) for each in output.locations)
        unique = drafts[0].properties.get(UNIQUE_KEY)
        if unique and not sent.is_batch:
            fields["transactionId"] = unique
        return answer(fields)

    return told


# Transactions


def _begin_transaction(talk: Talk, sent: Sent, draft: Draft, tag: Asked) -> None:
    # It is seen only once it is committed.
    draft.system_flag = draft.system_flag & ~TRANSACTION | COMMITTED
    group = sent.properties.get(PRODUCER_GROUP, sent.group)
    try:
        immunity = int(float(sent.properties.get(IMMUNITY, "0")) * 1000)
    except (ValueError, OverflowError):
        immunity = 0
    immunity = max(0, min(immunity, DELAY_MS_MAX))
    talk.streams.begin_transaction(
        talk.connection, tag, group, sent.topic, sent.queue, draft, immunity
    )


OUTCOMES: Final = {COMMITTED: Outcome.COMMIT, ROLLED_BACK: Outcome.ROLLBACK}


def end_transaction(talk: Talk, request: Command) -> Command | None:
    """Decide about a half message."""
    outcome = OUTCOMES.get(number(request, "commitOrRollback"), Outcome.UNKNOWN)
    half = number(request, "tranStateTableOffset")
    _check_ending(talk, half, text(request, "producerGroup", ""))
    tag = Asked(request, _ended)
    talk.streams.end_transaction(talk.connection, tag, half, outcome)
    return None


def _check_ending(talk: Talk, half: int, group: str) -> None:
    """Let nobody decide for another group, or about what the user may not send."""
    known = talk.streams.find_transaction(half)
    if known is None:
        return
    talk.require(Right.WRITE, known.stream)
    if known.group != group:
        raise Refusal(Response.SYSTEM_ERROR, f"The producer group wrong: {group[:255]}")


def _ended(output: Appended | Done) -> Command:
    return answer()


# Replies


def reply(talk: Talk, request: Command) -> Command | None:
    """Hand a reply to the client that asked, wherever it is connected to this broker."""
    sent = read_sent(request)
    talk.require(Right.WRITE, REPLIES)
    client = sent.properties.get(REPLY_TO)
    if client is None:
        raise Refusal(Response.SYSTEM_ERROR, f"reply message properties[{REPLY_TO}] is null")
    asker = talk.find_client(client)
    if asker is None:
        raise Refusal(
            Response.SYSTEM_ERROR, f"push reply message fail, channel of <{client}> not found."
        )
    now = str(talk.broker.now)
    sent.properties |= {**REGION, PUSHED_AT: now}
    fields = {
        "producerGroup": sent.group,
        "topic": sent.topic,
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": str(sent.default_queues),
        "queueId": str(sent.queue),
        "sysFlag": str(sent.system_flag),
        "bornTimestamp": str(sent.born_at),
        "flag": str(sent.flag),
        "properties": encode_properties(sent.properties).decode(),
        "reconsumeTimes": str(sent.reconsumed),
        "unitMode": "false",
        "bornHost": _host_of(talk),
        "storeHost": talk.place.address,
        "storeTimestamp": now,
    }
    queue = str(max(0, sent.queue))

    def told(came: Command) -> Command:
        if came.code != Response.SUCCESS:
            remark = f"push reply message to {client}fail."
            return answer(code=Response.SYSTEM_ERROR, remark=remark)
        return answer({**REGION, "msgId": "0", "queueId": queue, "queueOffset": "0"})

    push = Command(Request.PUSH_REPLY_MESSAGE_TO_CLIENT, fields=fields, body=request.body)
    tell_peer(asker, push, Relayed(talk.connection, bare(request), told))
    return None


SENDS: Final = frozenset(
    (Request.SEND_MESSAGE, Request.SEND_MESSAGE_V2, Request.SEND_BATCH_MESSAGE)
)
HANDLERS: Final[dict[int, Handler]] = {
    Request.SEND_MESSAGE: send,
    Request.SEND_MESSAGE_V2: send,
    Request.SEND_BATCH_MESSAGE: send,
    Request.SEND_REPLY_MESSAGE: reply,
    Request.SEND_REPLY_MESSAGE_V2: reply,
    Request.END_TRANSACTION: end_transaction,
}
