"""Messages of every kind with any fields, as hypothesis draws them."""

from typing import Any, cast

from hypothesis import strategies as st

from lockkeeper.message import openwire
from lockkeeper.message.destination import Destination, Kind
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId, XATransactionId
from lockkeeper.message.message import Message
from lockkeeper.message.primitives import Long, encode_map
from lockkeeper.message.rewrite import encoded

TEXTS = st.text(max_size=12)
NAMES = st.text("abcXYZ.ü", min_size=1, max_size=12)
LONGS = st.integers(-(2**63), 2**63 - 1)
TIMES = st.integers(0, 2**62)
DESTINATIONS = st.builds(Destination, st.sampled_from(list(Kind)), NAMES)
PRODUCERS = st.builds(ProducerId, NAMES, LONGS, LONGS)
MESSAGE_IDS = st.builds(MessageId, PRODUCERS, TIMES, TIMES, st.none() | NAMES)
TRANSACTIONS = st.builds(LocalTransactionId, NAMES, LONGS) | st.builds(
    XATransactionId, st.integers(0, 9), st.binary(max_size=8), st.binary(max_size=8)
)
PROPERTIES = st.dictionaries(NAMES, TEXTS | st.booleans() | LONGS.map(Long), max_size=4)
KINDS = (
    openwire.ActiveMQMessage,
    openwire.ActiveMQBytesMessage,
    openwire.ActiveMQTextMessage,
    openwire.ActiveMQMapMessage,
    openwire.ActiveMQBlobMessage,
)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Return a message with any of the fields that stand before or behind those replaced."""
    properties = draw(st.none() | PROPERTIES)
    kind = draw(st.sampled_from(KINDS))
    fields = kind(
        producer_id=draw(PRODUCERS),
        destination=draw(DESTINATIONS),
        transaction_id=draw(st.none() | TRANSACTIONS),
        original_destination=draw(st.none() | DESTINATIONS),
        message_id=draw(MESSAGE_IDS),
        original_transaction_id=draw(st.none() | TRANSACTIONS),
        group_id=draw(st.none() | TEXTS),
        group_sequence=draw(st.integers(-1, 9)),
        correlation_id=draw(st.none() | TEXTS),
        persistent=draw(st.booleans()),
        expiration=draw(TIMES | LONGS),
        priority=draw(st.integers(0, 9)),
        reply_to=draw(st.none() | DESTINATIONS),
        timestamp=draw(TIMES),
        type=draw(st.none() | TEXTS),
        content=draw(st.none() | st.binary(max_size=40)),
        marshalled_properties=None if properties is None else encode_map(properties),
        target_consumer_id=draw(st.none() | st.just(openwire.ConsumerId("c", 1, 2))),
        compressed=draw(st.booleans()),
        redelivery_counter=draw(st.integers(-3, 9)),
        user_id=draw(st.none() | TEXTS),
        broker_in_time=draw(TIMES),
    )
    return encoded(cast("Any", fields), draw(TIMES))
