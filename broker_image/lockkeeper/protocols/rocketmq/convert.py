"""Outputs of the core as commands for the peer, and its records as RocketMQ's messages."""

from typing import Final

from lockkeeper.broker.outputs import ForPeer, Output
from lockkeeper.broker.streams.drafts import (
    UNIQUE_KEY,
    Draft,
    Plain,
    StreamRecord,
    read_plain,
)
from lockkeeper.broker.streams.outputs import CheckTransaction, MembersChanged, Refused
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Request, Response
from lockkeeper.protocols.rocketmq.messages import (
    TRANSACTION,
    Host,
    Stored,
    encode_stored,
    encode_topic,
    message_id,
    pack_stored,
    parse_host,
)
from lockkeeper.protocols.rocketmq.talk import Asked, Said, Talk, answer, answering, refusing

ASKED_AT: Final = "TRANSACTION_CHECK_TIMES"


def stored_message(topic: str, queue: int, record: StreamRecord, host: Host) -> bytes:
    """Return a record as a client is sent it. Raises MalformedMessageError."""
    plain = read_plain(record.frame)
    properties = None if plain is None else _plain_properties(plain)
    draft = record.draft if plain is None or properties is None else plain
    stored = _stored(topic, queue, draft, record.location, host)
    stored.offset, stored.stored_at = record.offset, record.stored_at
    if properties is None:
        return encode_stored(stored)
    return pack_stored(stored, encode_topic(topic), properties)


def _plain_properties(plain: Plain) -> bytes | None:
    """Return properties as RocketMQ has them; None for texts that are other bytes there."""
    found = b"".join([b"%b\x01%b\x02" % each for each in plain.properties.items()])
    return found if found.isascii() else None


def _stored(topic: str, queue: int, draft: Draft | Plain, place: int, host: Host) -> Stored:
    return Stored(
        topic,
        queue,
        0,
        place,
        draft.body,
        draft.properties if isinstance(draft, Draft) else {},
        draft.flag,
        draft.system_flag,
        draft.born_at,
        parse_host(draft.born_host),
        0,
        host,
        draft.reconsumed,
    )


def command_of(talk: Talk, output: Output) -> Command | None:
    """Return the command that tells a peer of an output; None for what it is not told."""
    if isinstance(output, ForPeer):
        said: Said = output.words
        return said.command if said.relayed is None else talk.ask(said.command, said.relayed)
    if isinstance(output, MembersChanged):
        return talk.notice(Request.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": output.group})
    if isinstance(output, CheckTransaction):
        return _question(talk, output)
    tag = getattr(output, "tag", None)
    if not isinstance(tag, Asked) or tag.request.is_one_way:
        return None
    if isinstance(output, Refused):
        return answering(tag.request, refusing(output.error))
    return answering(tag.request, tag.answer(output))


def refusal_of(output: Output, error: Exception) -> Command | None:
    """Return the answer to who asked for what cannot be told; None if nobody waits for one.

    A question of another connection's peer is refused there.
    """
    if isinstance(output, ForPeer):
        said: Said = output.words
        if said.relayed is not None:
            said.relayed.refuse(Response.SYSTEM_ERROR, str(error))
        elif said.command.is_answer:
            refused = answer(code=Response.SYSTEM_ERROR, remark=str(error))
            return answering(said.command, refused)
        return None
    tag = getattr(output, "tag", None)
    if not isinstance(tag, Asked) or tag.request.is_one_way:
        return None
    return answering(tag.request, answer(code=Response.SYSTEM_ERROR, remark=str(error)))


def _question(talk: Talk, output: CheckTransaction) -> Command:
    """Return the question what became of a transaction."""
    host, draft = talk.place.host, output.draft
    draft.properties |= {ASKED_AT: str(output.checks), "WAIT": "false"}
    stored = _stored(output.stream, output.partition, draft, output.location, host)
    stored.system_flag &= ~TRANSACTION
    stored.offset = output.number
    identifier = message_id(host, output.location)
    unique = draft.properties.get(UNIQUE_KEY, identifier)
    fields = {
        "topic": output.stream,
        "tranStateTableOffset": str(output.number),
        "commitLogOffset": str(output.location),
        "msgId": unique,
        "transactionId": unique,
        "offsetMsgId": identifier,
    }
    return talk.notice(Request.CHECK_TRANSACTION_STATE, fields, encode_stored(stored))
