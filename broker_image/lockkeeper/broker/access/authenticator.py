"""The interface of what knows users and their passwords; it lives outside of the core."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from lockkeeper.broker.access.rights import Rights

Verdict: TypeAlias = Callable[[Rights | None], None]
"""Called once, with the rights of a user, or None for whoever may not connect."""


class Authenticator(Protocol):
    """Finds out whether somebody may connect."""

    def check_password(
        self, user: str | None, password: str | None, tell: Verdict, address: str = ""
    ) -> None:
        """Tell the verdict, at once or later; None stands for what the client does not say.

        *address* is where the client comes from.
        """
