"""Access checks: the right that each kind of command needs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lockkeeper.broker.access.permissions import Right
from lockkeeper.broker.advisories.names import is_advisory
from lockkeeper.broker.errors import InvalidDestinationError
from lockkeeper.broker.names import check_name as check_names
from lockkeeper.broker.routing.names import check_name, is_own

if TYPE_CHECKING:
    from lockkeeper.broker.access.rights import Rights
    from lockkeeper.broker.connections import Connection
    from lockkeeper.broker.regions.registry import Registry
    from lockkeeper.broker.routing.router import Router
    from lockkeeper.message.destination import Destination
    from lockkeeper.message.message import Message
    from lockkeeper.store.base import Receipt


class Guard:
    """Asks for the rights that commands need; every method raises AccessDeniedError.

    A destination that is not there yet is created by its first use, which needs that right, too;
    advisory topics are the broker's own. What rules forward to, the broker itself writes to.
    """

    def __init__(self, registry: "Registry", router: "Router") -> None:
        self._registry = registry
        self._router = router

    def check_sending(self, rights: "Rights", destination: "Destination") -> None:
        """For a producer, or a message to another destination than the one before."""
        rights.check_write(destination)
        for part in destination.parts():
            self._check_existence(rights, part)

    def check_answering(self, connection: "Connection", to: "Destination") -> None:
        """For a request that the broker answers to a destination: whoever asks could send there.

        Raises InvalidDestinationError for what nobody may send to.
        """
        check_names(to)
        for part in to.parts():
            if is_own(part):
                raise InvalidDestinationError(f"{part} is the broker's own: it takes no answers")
            if self._registry.find(part) is None:
                check_name(part)
        if connection.rights is not None:
            self.check_sending(connection.rights, to)

    def check_consuming(
        self, rights: "Rights", destination: "Destination", is_browser: bool
    ) -> None:
        """For a consumer, or a browser, of a destination, a wildcard, or a list of such."""
        rights.require(Right.READ, destination)
        for part in destination.parts():
            if part.is_pattern and (is_browser or not self._router.claims(part)):
                continue
            self._check_existence(rights, part)

    def check_creating(self, rights: "Rights", destination: "Destination") -> None:
        """For a command that asks for destinations."""
        for part in destination.parts():
            self._check_existence(rights, part)

    def _check_existence(self, rights: "Rights", destination: "Destination") -> None:
        if self._registry.find(destination) is None and not is_advisory(destination):
            rights.require(Right.CREATE, destination)


class SendingGuard:
    """An interceptor that comes before all others: some of them end a message's way."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def intercept(
        self, connection: "Connection", message: "Message", receipt: "Receipt | None"
    ) -> "Message":
        """See `Interceptor.intercept`."""
        rights = connection.rights
        if rights is not None and message.destination is not connection.last_destination:
            rights.check_write(message.destination)
        return message

    def passes(self, messages: "Sequence[Message]") -> bool:
        """See `Interceptor.passes`: they go where one went before."""
        return True
