"""Arrival of messages that the store has been given: they become visible once they are durable."""

from lockkeeper.broker.context import Context
from lockkeeper.broker.regions.route import Route
from lockkeeper.broker.transactions import SentRun
from lockkeeper.store.base import Reference


class Arrival:
    """The receipt of messages that the broker itself sends somewhere.

    From `begin` on until then their destination is in use, however empty it looks.
    """

    __slots__ = ("_context", "_references", "_route")

    def __init__(self, context: Context, route: Route, references: list[Reference]) -> None:
        self._context = context
        self._route = route
        self._references = references

    def begin(self) -> None:
        """Know that the store has taken the messages."""
        self._context.arriving[self] = SentRun(self._route, self._references)

    def settle(self) -> None:
        """Show the messages to consumers, once; those whose destination went count as gone."""
        self._context.arriving.pop(self, None)
        references, self._references = self._references, []
        if self._route.is_gone:
            for reference in references:
                if reference.state:
                    self._context.store.release(reference)
        elif references:
            self._route.admit_run(references)
