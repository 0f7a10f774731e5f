"""Closing at the end of a `with`."""

from types import TracebackType
from typing import Self


class Closing:
    """Something that is closed at the end of the block that it stands for."""

    def close(self) -> None:
        """Close it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
