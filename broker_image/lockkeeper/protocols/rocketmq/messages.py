"""Messages as RocketMQ's clients read and send them: stored ones, batches, ids, properties.

A stored message is what a pull answers, many in a row; a batch is what a producer sends at once.
"""

from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from struct import Struct, error
from typing import Final
from zlib import crc32

from lockkeeper.keeping import kept_while_short
from lockkeeper.protocols.rocketmq.errors import ProtocolError

COMPRESSED, SEVERAL_TAGS = 1, 2
"""System flags: the body is compressed; it belongs to a batch's tags (unused)."""
PREPARED, COMMITTED, ROLLED_BACK, TRANSACTION = 4, 8, 12, 12
"""System flags of transactions, and the mask of them."""
BORN_AT_IPV6, STORED_AT_IPV6 = 16, 32

MAGIC: Final = 0xDAA320A7
MAGIC_LONG_TOPIC: Final = 0xDAA320AB
SHORT_TOPIC_BYTES_MAX: Final = 127
TOPIC_BYTES_MAX: Final = 0x7FFF
PROPERTIES_BYTES_MAX: Final = 0x7FFF
PROPERTIES_MAX: Final = 1024
BATCH_MESSAGES_MAX: Final = 10_000
NAME_END, VALUE_END = "\x01", "\x02"

# Total size, magic, CRC, queue, flag, queue offset, physical offset, system flag, born at.
_LEAD: Final = Struct(">IIiiiqqiq")
# Stored at.
_LONG: Final = Struct(">q")
_INT: Final = Struct(">i")
_SHORT: Final = Struct(">h")
# Times consumed, offset of the prepared message, size of the body.
_MIDDLE: Final = Struct(">iqi")
# Total size, magic, CRC, flag, size of the body.
_IN_BATCH: Final = Struct(">iiiii")
_ID: Final = Struct(">iq")


@dataclass(frozen=True, slots=True)
class Host:
    """An address as messages carry it: the bytes of an IP address, and a port."""

    address: bytes
    port: int

    @property
    def packed(self) -> bytes:
        """The bytes of address and port."""
        return self.address + _INT.pack(self.port)

    @property
    def is_ipv6(self) -> bool:
        """Tell whether the address has 16 bytes."""
        return len(self.address) > 4


NOWHERE: Final = Host(bytes(4), 0)


@kept_while_short(4096)
def parse_host(text: str) -> Host:
    """Return the host that *text* names, such as `10.0.0.7:40112`; NOWHERE for another text."""
    host, _, port = text.rpartition(":")
    try:
        parsed = ip_address(host.strip("[]").partition("%")[0])
        number = int(port)
    except ValueError:
        return NOWHERE
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return Host(parsed.packed, number) if 0 <= number <= 0xFFFF else NOWHERE


@dataclass(slots=True)
class Stored:
    """A message that a client is sent; times are in ms since the epoch.

    `place` tells where it is stored and is unique in the broker.
    """

    topic: str
    queue: int
    offset: int
    place: int
    body: bytes
    properties: dict[str, str]
    flag: int = 0
    system_flag: int = 0
    born_at: int = 0
    born_host: Host = NOWHERE
    stored_at: int = 0
    stored_host: Host = NOWHERE
    reconsumed: int = 0
    prepared_at: int = 0


def encode_stored(message: Stored) -> bytes:
    """Return a message as a pull answers it. Raises ProtocolError for what it has no room for."""
    return pack_stored(message, encode_topic(message.topic), encode_properties(message.properties))


@kept_while_short(1024)
def encode_topic(topic: str) -> bytes:
    """Return the name of a topic in UTF-8."""
    return topic.encode("utf-8", "replace")


def pack_stored(message: Stored, topic: bytes, properties: bytes) -> bytes:
    """Return a message as a pull answers it; its topic and properties are given in bytes.

    Raises ProtocolError for what it has no room for.
    """
    try:
        return _pack_stored(message, topic, properties)
    except error as wrong:
        raise ProtocolError(f"a message with a number that is too large: {wrong}") from wrong


def _pack_stored(message: Stored, topic: bytes, properties: bytes) -> bytes:
    if len(topic) > TOPIC_BYTES_MAX or len(properties) > PROPERTIES_BYTES_MAX:
        raise ProtocolError("a topic or properties of more than 32767 bytes")
    is_long = len(topic) > SHORT_TOPIC_BYTES_MAX
    system_flag = message.system_flag & ~(BORN_AT_IPV6 | STORED_AT_IPV6)
    system_flag |= BORN_AT_IPV6 if message.born_host.is_ipv6 else 0
    system_flag |= STORED_AT_IPV6 if message.stored_host.is_ipv6 else 0
    body = message.body
    behind = b"".join(
        (
            message.born_host.packed,
            _LONG.pack(message.stored_at),
            message.stored_host.packed,
            _MIDDLE.pack(message.reconsumed, message.prepared_at, len(body)),
            body,
            _SHORT.pack(len(topic)) if is_long else len(topic).to_bytes(1, "big"),
            topic,
            _SHORT.pack(len(properties)),
            properties,
        )
    )
    lead = _LEAD.pack(
        _LEAD.size + len(behind),
        MAGIC_LONG_TOPIC if is_long else MAGIC,
        crc32(body) & 0x7FFFFFFF,
        message.queue,
        message.flag,
        message.offset,
        message.place,
        system_flag,
        message.born_at,
    )
    return lead + behind


def decode_stored(data: bytes) -> Stored:
    """Return the stored message that *data* is. Raises ProtocolError."""
    try:
        return _decode_stored(data)
    except (error, IndexError) as wrong:
        raise ProtocolError("a message that is cut short") from wrong


def _decode_stored(data: bytes) -> Stored:
    size, magic, crc, queue, flag, offset, place, system_flag, born_at = _LEAD.unpack_from(data)
    if size != len(data) or magic not in (MAGIC, MAGIC_LONG_TOPIC):
        raise ProtocolError(f"{len(data)} bytes that are no message")
    born_host, position = _host(data, _LEAD.size, bool(system_flag & BORN_AT_IPV6))
    (stored_at,) = _LONG.unpack_from(data, position)
    position += _LONG.size
    stored_host, position = _host(data, position, bool(system_flag & STORED_AT_IPV6))
    reconsumed, prepared_at, body_size = _MIDDLE.unpack_from(data, position)
    body, position = _piece(data, position + _MIDDLE.size, body_size)
    if crc32(body) & 0x7FFFFFFF != crc:
        raise ProtocolError("a body that is damaged")
    if magic == MAGIC:
        topic_size, position = data[position], position + 1
    else:
        (topic_size,) = _SHORT.unpack_from(data, position)
        position += _SHORT.size
    topic, position = _piece(data, position, topic_size)
    (properties_size,) = _SHORT.unpack_from(data, position)
    properties, position = _piece(data, position + _SHORT.size, properties_size)
    if position != len(data):
        raise ProtocolError("a message that is longer than its parts")
    return Stored(
        _decoded(topic), queue, offset, place, body, decode_properties(_decoded(properties)), flag,
        system_flag, born_at, born_host, stored_at, stored_host, reconsumed, prepared_at,
    )  # fmt: skip


def _host(data: bytes, position: int, is_ipv6: bool) -> tuple[Host, int]:
    end = position + (16 if is_ipv6 else 4)
    (port,) = _INT.unpack_from(data, end)
    return Host(data[position:end], port), end + _INT.size


def _piece(data: bytes, position: int, size: int) -> tuple[bytes, int]:
    end = position + size
    if not position <= end <= len(data):
        raise ProtocolError(f"a part of {size} bytes in a message of {len(data)}")
    return data[position:end], end


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as wrong:
        raise ProtocolError(f"a text that is not UTF-8: {wrong}") from wrong


@dataclass(slots=True)
class InBatch:
    """One message of a batch."""

    body: bytes
    properties: dict[str, str]
    flag: int = 0


def decode_batch(body: bytes) -> list[InBatch]:
    """Return the messages of a batch. Raises ProtocolError."""
    messages: list[InBatch] = []
    position = 0
    while position < len(body):
        if len(messages) == BATCH_MESSAGES_MAX:
            raise ProtocolError(f"a batch of more than {BATCH_MESSAGES_MAX} messages; send several")
        try:
            size, _, _, flag, body_size = _IN_BATCH.unpack_from(body, position)
            content, end = _piece(body, position + _IN_BATCH.size, body_size)
            (properties_size,) = _SHORT.unpack_from(body, end)
        except error as wrong:
            raise ProtocolError("a batch that is cut short") from wrong
        properties, end = _piece(body, end + _SHORT.size, properties_size)
        if end != position + size:
            raise ProtocolError("a message of a batch that is not as long as it says")
        messages.append(InBatch(content, decode_properties(_decoded(properties)), flag))
        position = end
    return messages


def encode_batch(messages: list[InBatch]) -> bytes:
    """Return a batch as producers send it."""
    parts = []
    for each in messages:
        properties = encode_properties(each.properties)
        size = _IN_BATCH.size + len(each.body) + _SHORT.size + len(properties)
        parts += [
            _IN_BATCH.pack(size, 0, 0, each.flag, len(each.body)),
            each.body,
            _SHORT.pack(len(properties)),
            properties,
        ]
    return b"".join(parts)


def encode_properties(properties: dict[str, str]) -> bytes:
    """Return properties as one text, UTF-8: each a name, its end, a value, its end."""
    text = "".join(f"{name}{NAME_END}{value}{VALUE_END}" for name, value in properties.items())
    return text.encode("utf-8", "replace")


def decode_properties(text: str) -> dict[str, str]:
    """Return the properties in a text; what is no name with a value is passed over, as by Java."""
    properties: dict[str, str] = {}
    for each in text.split(VALUE_END):
        name, end, value = each.partition(NAME_END)
        if end and name and value:
            properties[name] = value
            if len(properties) > PROPERTIES_MAX:
                raise ProtocolError(f"more than {PROPERTIES_MAX} properties of a message")
    return properties


def message_id(host: Host, place: int) -> str:
    """Return the id by which a message is found: where it is stored, in hexadecimal."""
    return (host.address + _ID.pack(host.port, place)).hex().upper()


def place_of(identifier: str) -> int | None:
    """Return the place in a message id, None for another text."""
    try:
        data = bytes.fromhex(identifier)
    except ValueError:
        return None
    if len(data) not in (16, 28):
        return None
    place: int = _LONG.unpack_from(data, len(data) - _LONG.size)[0]
    return place
