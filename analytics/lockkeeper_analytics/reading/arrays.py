"""Arrow arrays of what journals hold: what Arrow has no form for is shown by what comes nearest.

Half a surrogate pair is no character: Java cuts texts within one, and modified UTF-8 and JSON carry
the half that is left. Every text of every table is made here, and every time.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockkeeper.message.text import decode_text

REPLACEMENT = "\ufffd"
EARLIEST, LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The microseconds since the epoch from the year 1 to the end of 9999, which all can show."""
TIMESTAMP = pa.timestamp("us", tz="UTC")
_SURROGATES = re.compile("[\ud800-\udfff]")


def array_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return *values* as an array; in texts U+FFFD stands for what is no character."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([_shown(value) for value in values], kind)


def repeated(value: Any, count: int, kind: pa.DataType) -> pa.Array:
    """Return *value* so many times, shown as by `array_of`."""
    return pa.repeat(array_of([value], kind)[0], count)


def texts_of(values: pa.Array) -> pa.Array:
    """Return binary *values* as texts; only where one is no UTF-8 it is looked at by itself."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        found = values.to_pylist()
        texts = [None if value is None else value.decode("utf-8", "replace") for value in found]
        return pa.array(texts, pa.string())


def times_of(
    milliseconds: npt.NDArray[np.int64], absent: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """Return *milliseconds* since the epoch as timestamps; 0 and what is *absent* are null.

    What is before the year 1 or after 9999 is the nearest time within: clients name any.
    """
    # Beyond the last millisecond, so that what is cut off is the last microsecond.
    within = np.clip(milliseconds, EARLIEST // 1000, LATEST // 1000 + 1)
    nothing = milliseconds == 0 if absent is None else absent | (milliseconds == 0)
    return pa.array(np.minimum(within * 1000, LATEST), pa.int64(), mask=nothing).cast(TIMESTAMP)


def microseconds(milliseconds: int) -> int:
    """Return *milliseconds* since the epoch in microseconds, as `times_of` does."""
    return min(max(milliseconds * 1000, EARLIEST), LATEST)


def text_in(octets: bytes) -> str:
    """Return the text in modified UTF-8 *octets*; U+FFFD stands for bytes that are no text."""
    try:
        return decode_text(octets)
    except UnicodeDecodeError:
        return octets.decode("utf-8", "replace")


def _shown(value: Any) -> Any:
    """Return *value* with characters only: a text, a list of texts, or the pairs of a map."""
    if isinstance(value, str):
        return _SURROGATES.sub(REPLACEMENT, value)
    if not isinstance(value, list):
        return value
    return (
        _shown_pairs(value) if value and isinstance(value[0], tuple) else list(map(_shown, value))
    )


def _shown_pairs(pairs: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return *pairs* shown; of names that are then the same only the first: a map has each once."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        found.setdefault(_shown(name), _shown(value))
    return list(found.items())
