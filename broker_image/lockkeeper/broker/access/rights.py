"""The rights of one connection: its user, with the groups and permissions of the moment."""

from lockkeeper.broker.access.permissions import Groups, PermissionMap, Right
from lockkeeper.broker.advisories.names import DESTINATIONS
from lockkeeper.broker.errors import AccessDeniedError
from lockkeeper.message.destination import Destination, Kind

OPEN_TO_ALL = frozenset((DESTINATIONS[Kind.TEMP_QUEUE], DESTINATIONS[Kind.TEMP_TOPIC]))
"""What every client library listens to: it needs no permission."""
REMEMBERED_MAX = 1000


class Rights:
    """Rights of a user; without any permissions, the right to everything.

    Temporary destinations belong to who makes them, and others only answer there.
    """

    __slots__ = ("_groups", "_permissions", "_writable", "is_anonymous", "user")

    def __init__(
        self,
        user: str,
        groups: Groups,
        permissions: PermissionMap | None,
        is_anonymous: bool = False,
    ) -> None:
        self.user = user
        self.is_anonymous = is_anonymous
        self._groups = groups
        self._permissions = permissions
        self._writable: set[Destination] = set()

    def require(self, right: Right, destination: Destination) -> None:
        """Make sure of a right on a destination, of a composite on all it lists.

        Raises AccessDeniedError.
        """
        for part in destination.parts():
            if not self._allows(right, part):
                raise AccessDeniedError(
                    f"User {self.user} is not authorized to {right.value}: {part}"
                )

    def check_write(self, destination: Destination) -> None:
        """Make sure that the user may send to a destination. Raises AccessDeniedError."""
        if destination in self._writable:
            return
        self.require(Right.WRITE, destination)
        if len(self._writable) >= REMEMBERED_MAX:
            self._writable.clear()
        self._writable.add(destination)

    def _allows(self, right: Right, destination: Destination) -> bool:
        if self._permissions is None or destination.is_temporary:
            return True
        if right is Right.READ and destination in OPEN_TO_ALL:
            return True
        return self._permissions.allows(right, destination, self._groups)
