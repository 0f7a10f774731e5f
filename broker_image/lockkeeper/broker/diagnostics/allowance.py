"""Allowance of bodies that one answer may read from the disk, while all else has to wait."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lockkeeper.broker.regions.backlog import Backlog
    from lockkeeper.message.message import Message
    from lockkeeper.store.base import Reference

# A thousand small bodies, or a few large ones.
ALLOWED_BYTES: Final = 16 << 20
# To find a body takes as long as reading so many bytes.
LOOK_BYTES: Final = 16 << 10


class Allowance:
    """Bytes that may still be read for one answer; the first body may be as large as it is."""

    def __init__(self) -> None:
        self._left = ALLOWED_BYTES

    def peek(self, backlog: "Backlog", reference: "Reference") -> "Message | None":
        """Return a body, None for one that is gone, or only on disk with nothing left for it."""
        if reference.message is not None:
            return reference.message
        if self._left <= 0:
            return None
        self._left -= LOOK_BYTES + reference.size
        return backlog.peek(reference)
