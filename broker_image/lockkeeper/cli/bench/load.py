"""The load of a bench: how much of it each worker does, and the stamps of its messages."""

import struct
from dataclasses import dataclass
from pathlib import Path

from lockkeeper.message.destination import Destination

_STAMP = struct.Struct(">8s8sq")
_MAGIC = b"LKBENCH1"
STAMP_BYTES = _STAMP.size


@dataclass(frozen=True)
class Load:
    """Work that is asked of a broker, and the address of that.

    `size` is the bytes of a body, `rate` messages a second of each producer, `messages` the number
    of all producers together, `transaction` the number of messages in each, 0 for none.
    """

    url: str
    user: str | None
    password: str | None
    ca_file: Path | None
    destination: Destination
    producers: int
    consumers: int
    size: int
    rate: float | None
    messages: int | None
    seconds: float | None
    transaction: int
    is_persistent: bool
    prefetch: int | None
    run: bytes
    """Eight bytes that no other run has."""

    def share_of(self, producer: int) -> int | None:
        """Return the number of messages that a producer sends, None when there is no bound."""
        if self.messages is None:
            return None
        each, more = divmod(self.messages, self.producers)
        return each + (producer < more)

    def expected(self, sent: int) -> int:
        """Return how many messages consumers get when *sent* were sent."""
        copies = self.consumers if self.destination.is_topic else min(1, self.consumers)
        return sent * copies


@dataclass(frozen=True)
class Stamp:
    """First bytes of a message of a bench: its run, and when it was to be sent."""

    run: bytes
    sent_at: int
    """Nanoseconds since the epoch."""

    def body(self, size: int) -> bytes:
        """Return a body of *size* bytes, at least STAMP_BYTES, that begins with the stamp."""
        return _STAMP.pack(_MAGIC, self.run, self.sent_at).ljust(size, b"\0")


def read_stamp(body: object) -> Stamp | None:
    """Return the stamp of a body, None when no bench has made it."""
    if not isinstance(body, bytes) or len(body) < STAMP_BYTES or not body.startswith(_MAGIC):
        return None
    _, run, sent_at = _STAMP.unpack_from(body)
    return Stamp(run, sent_at)
