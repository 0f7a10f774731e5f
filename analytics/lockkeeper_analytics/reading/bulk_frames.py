"""Facts of all messages of a chunk at once, where these are laid out plainly.

Plain is what `frames` calls so: no group, correlation id or reply in front, nothing
rare behind the body. Other messages are read by `frames`, one by one. openwire.md sections 6, 8.
"""

import numpy as np
import numpy.typing as npt

from lockkeeper.journal.walk import ADD
from lockkeeper.message.layout import (
    LOCAL_TRANSACTION_ID,
    MESSAGE_ID,
    PRODUCER_ID,
    PRODUCER_ID_AT,
    XA_TRANSACTION_ID,
)
from lockkeeper_analytics.reading.bulk import Bulk, Flags
from lockkeeper_analytics.reading.record_sizes import Numbers

_NOTHING = 7
"""So many zeros where there is no original transaction, group, sequence and correlation id."""

DESTINATION_TYPES = (100, 101, 102, 103)
_HEAD_SIZE = 7 + 1 + 8 + 1 + 1 + 8
_TAIL_SIZE = 37
_ZEROS_OF_TAIL = (0, 1, 7, 16, 19)
"""Places in the tail of the flags of what is rare."""


class BulkFrames:
    """The messages of *bulk*: `index` says which records they are, the arrays have one value each.

    `is_plain` tells of which messages the other values hold.
    """

    def __init__(self, bulk: Bulk) -> None:
        self._octets = np.frombuffer(bulk.data, np.uint8)
        self._last = len(self._octets) - 1
        self.index: Numbers = np.flatnonzero(bulk["command"] == ADD)
        start = bulk["value_at"][self.index] + 4
        self._end = start - 4 + bulk["value_size"][self.index]
        self.is_plain: Flags = np.ones(len(start), np.bool_)
        self._at = start + PRODUCER_ID_AT
        self._lead()
        self._head()
        self._tail()

    def _octet(self, at: Numbers) -> Numbers:
        return self._octets[np.clip(at, 0, self._last)].astype(np.int64)

    def _number(self, at: Numbers, size: int) -> Numbers:
        """Return the big-endian number of *size* bytes at each place."""
        places = np.clip(at[:, None] + np.arange(size), 0, self._last)
        octets: npt.NDArray[np.uint8] = self._octets[places]
        return octets.view(f">i{size}").ravel().astype(np.int64)

    def _expect(self, value: int) -> None:
        self.is_plain &= self._octet(self._at) == value
        self._at = self._at + 1

    def _string(self) -> None:
        """Pass a string that is there; its length stands in two bytes."""
        self._expect(1)
        self._at = self._at + 2 + (self._octet(self._at) << 8 | self._octet(self._at + 1))

    def _producer(self) -> None:
        self._expect(1)
        self._expect(PRODUCER_ID)
        self._string()
        self._at = self._at + 16

    def _transaction(self) -> None:
        """Pass the id of the transaction that the message was sent in, if it was in one."""
        at, is_absent = self._at, self._octet(self._at) == 0
        kind = np.where(self._octet(at) == 1, self._octet(at + 1), 0)
        # A local one has a number, and a connection: a structure that has a text.
        is_local = (kind == LOCAL_TRANSACTION_ID) & (self._octet(at + 10) == 1)
        is_local &= self._octet(at + 12) == 1
        behind_local = at + 15 + (self._octet(at + 13) << 8 | self._octet(at + 14))
        # One of XA has a format, and two ids.
        branch = at + 11 + np.maximum(self._number(at + 7, 4), 0)
        is_xa = (kind == XA_TRANSACTION_ID) & (self._octet(at + 6) == 1)
        is_xa &= self._octet(branch) == 1
        behind_xa = branch + 5 + np.maximum(self._number(branch + 1, 4), 0)
        self.is_plain &= is_absent | is_local | is_xa
        self._at = np.where(is_local, behind_local, np.where(is_xa, behind_xa, at + 1))

    def _lead(self) -> None:
        self._producer()
        self._expect(1)
        self.is_plain &= np.isin(self._octet(self._at), DESTINATION_TYPES)
        self._at = self._at + 1
        self._string()
        self._transaction()
        self._expect(0)
        self._expect(1)
        self._expect(MESSAGE_ID)
        self._expect(0)
        self.producer_at = self._at
        self._producer()
        self.producer_size = self._at - self.producer_at
        self._at = self._at + 16

    def _head(self) -> None:
        at = self._at
        places = np.clip(at[:, None] + np.arange(_NOTHING), 0, self._last)
        self.is_plain &= ~self._octets[places].any(axis=1)
        self.persistent = self._octet(at + 7) != 0
        self.expiration = self._number(at + 8, 8)
        self.priority = (self._octet(at + 16) ^ 128) - 128
        self.is_plain &= self._octet(at + 17) == 0
        self.timestamp = self._number(at + 18, 8)
        self._at = at + _HEAD_SIZE
        self.is_plain &= self._at <= self._end

    def _tail(self) -> None:
        self.is_plain &= self._octet(self._at) == 0
        self._at = self._at + 1
        for _ in ("content", "properties"):
            present = self._octet(self._at) != 0
            size = self._number(self._at + 1, 4)
            self.properties_at, self.properties_size = self._at + 5, np.where(present, size, 0)
            self._at = self._at + np.where(present, 5 + np.maximum(size, 0), 1)
        at = self._at
        self.is_plain &= at + _TAIL_SIZE == self._end
        for place in _ZEROS_OF_TAIL:
            self.is_plain &= self._octet(at + place) == 0
        self.compressed = self._octet(at + 2) != 0
        self.redeliveries = self._number(at + 3, 4)
