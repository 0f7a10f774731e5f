"""References of a topic that several consumers share.

A module of its own, because mypyc compiles no subclass of `list`.
"""

from collections.abc import Iterable
from typing import Any

from lockkeeper.store.base import Reference


class SharedReferences(list[Reference]):
    """Messages that several consumers are sent at once.

    `sent` and `sent_at` are their protocol's, which makes only once what it sends of them. `kept`
    is theirs who let them wait.
    """

    __slots__ = ("kept", "sent", "sent_at")

    def __init__(self, references: Iterable[Reference]) -> None:
        super().__init__(references)
        self.sent: list[Any] = []
        self.sent_at = -1
        self.kept: Any = None
