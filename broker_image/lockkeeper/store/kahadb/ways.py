"""Messages in the journal that another broker brought: so they are known if they come again."""

from lockkeeper.journal.walk import QuickRecord
from lockkeeper.message.broker_path import (
    NOTHING_RARE,
    RARE_FROM_END,
    TIMES_FROM_END,
    broker_path,
)
from lockkeeper.message.destination import Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.store.producers import Producers, network_stream

_SIZE_BYTES = 4


def ends_plainly_at(data: bytes, end: int) -> bool:
    """Tell whether the message that ends at *end* says nothing rare: no brokerPath above all."""
    return data[end - RARE_FROM_END : end - TIMES_FROM_END] == NOTHING_RARE


def note_way(producers: Producers, destination: Destination, row: QuickRecord, data: bytes) -> None:
    """Note the number of an added message by its producer, and the way it has come."""
    _, _, _, _, message_id, at, length, _, _, _ = row
    try:
        hops = len(broker_path(data[at + _SIZE_BYTES : at + length]))
    except (MalformedMessageError, IndexError, UnicodeDecodeError):
        # Whoever reads the message finds that out, and quarantines it.
        return
    producer, _, sequence = message_id.rpartition(b":")
    if hops and sequence.isdigit():
        hops = hops if destination.is_queue else 0
        producers.note_number(network_stream(producer, hops, destination.wire), int(sequence))
