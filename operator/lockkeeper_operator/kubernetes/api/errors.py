"""Errors of the API server, by what they mean for the caller."""

import json
from typing import Any

FORBIDDEN, NOT_FOUND, CONFLICT, INVALID, TOO_MANY = 403, 404, 409, 422, 429
TEXT_CHARACTERS_MAX = 500


class ApiError(Exception):
    """An answer other than success; *status* is HTTP's, 0 where there was no answer at all."""

    def __init__(
        self, status: int, message: str, reason: str = "", causes: tuple[dict[str, str], ...] = ()
    ) -> None:
        super().__init__(f"{status} {reason}: {message}" if status else message)
        self.status = status
        self.message = message
        self.reason = reason
        self.causes = causes
        self.retry_after: float | None = None

    @property
    def lacks_rights(self) -> bool:
        """Whether who asked may not do such a thing at all; a quota or a policy says no, too."""
        return self.status == FORBIDDEN and "User " in self.message and " cannot " in self.message

    @property
    def namespace_ends(self) -> bool:
        """Whether nothing is made any more in a namespace, as it is being deleted."""
        return any(each.get("reason") == "NamespaceTerminating" for each in self.causes)

    @property
    def is_refusal(self) -> bool:
        """Whether asking the same again is of no use: the object itself is not taken."""
        if self.namespace_ends:
            return False
        # What cannot be read as its kind is answered like this, without a reason.
        unreadable = self.status == 500 and not self.reason and self.message.startswith("failed to")
        return unreadable or self.status in (400, 403, INVALID)


def error_of(status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """Return the error that an answer tells of; *body* may be anything."""
    try:
        said: Any = json.loads(body)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        return ApiError(status, body[:TEXT_CHARACTERS_MAX].decode("utf-8", "replace"))
    details = said.get("details") or {}
    causes = details.get("causes") or ()
    error = ApiError(
        status,
        str(said.get("message", ""))[:TEXT_CHARACTERS_MAX],
        str(said.get("reason", "")),
        tuple(each for each in causes if isinstance(each, dict)),
    )
    if retry_after and retry_after.isdigit():
        error.retry_after = float(retry_after)
    return error
