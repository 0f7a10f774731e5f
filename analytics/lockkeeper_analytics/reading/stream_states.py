"""Texts that streams keep of groups and of declared streams, as the journal holds them."""

import json
from collections.abc import Callable

from lockkeeper.journal.walk import ADD, QuickRecord
from lockkeeper.message.bodies import decode_body
from lockkeeper.message.destination import Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.segments import STATE_NAME, STATES
from lockkeeper_analytics.reading.frames import decode_message, properties_in


def state_in(data: bytes, start: int, end: int) -> str | None:
    """Return `{"name":…,"value":…}` of the message at data[start:end]; None: it tells nothing.

    Raises MalformedMessageError.
    """
    fields = decode_message(data, start, end)
    name = properties_in(fields.marshalled_properties).get(STATE_NAME)
    try:
        text = decode_body(data[start], fields.content, fields.compressed)
        value = json.loads(text) if isinstance(text, str) else None
    except (MalformedMessageError, ValueError, RecursionError):
        return None
    if not isinstance(name, str) or not isinstance(value, dict):
        return None
    return json.dumps({"name": name, "value": value}, separators=(",", ":"))


def is_state(record: QuickRecord, destination_of: Callable[[bytes], Destination]) -> bool:
    """Tell whether *record* adds such a text."""
    return record[0] == ADD and destination_of(record[3]) == STATES
