"""Batches: a control record with an Adler-32, user records, and the EOF record behind them.

The next batch overwrites the EOF record (kahadb.md section 2).
"""

import struct
from typing import Final
from zlib import adler32

CONTROL_SIZE: Final = 28
CONTROL_START = b"\x00\x00\x00\x1c\x02WRITE BATCH"
CONTROL = struct.Struct(">16siQ")
"""The fixed start, the length of the records, their Adler-32 (0 = unchecked)."""

EOF_RECORD: Final[bytes] = b"-qMa4"
EOF_OLD: Final[bytes] = b"\0\0\0\0\0"
EOF_SIZE: Final = 5


def control_record(records: bytes) -> bytes:
    """Return the control record for a batch of the encoded *records*."""
    return CONTROL.pack(CONTROL_START, len(records), adler32(records))


def build_batch(records: bytes) -> bytes:
    """Return the bytes to write for one batch of the encoded *records*, EOF record included."""
    return b"%b%b%b" % (control_record(records), records, EOF_RECORD)
