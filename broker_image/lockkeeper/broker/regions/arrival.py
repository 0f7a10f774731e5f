"""Arrival of messages that the store has been given: they become visible once they are durable."""

from collections.abc import Sequence

from lockkeeper.broker.regions.route import Route
from lockkeeper.store.base import Reference, Store


class Arrival:
    """The receipt of messages that the broker itself sends somewhere."""

    __slots__ = ("_references", "_route", "_store")

    def __init__(self, store: Store, route: Route, references: Sequence[Reference]) -> None:
        self._store = store
        self._route = route
        self._references = references

    def settle(self) -> None:
        """Show the messages to consumers, once; those whose destination went count as gone."""
        references, self._references = self._references, ()
        if self._route.is_gone:
            for reference in references:
                if reference.state:
                    self._store.release(reference)
        elif references:
            self._route.admit_run(references)
