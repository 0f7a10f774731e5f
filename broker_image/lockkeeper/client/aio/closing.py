"""Closing at the end of an `async with`."""

from types import TracebackType
from typing import Self


class Closing:
    """Something that is closed at the end of the block that it stands for."""

    async def close(self) -> None:
        """Close it."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
