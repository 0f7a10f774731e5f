"""Brokers of a network that the clients of one listener are told of, so that they find others."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.broker.outputs import Introduction

SEPARATOR: Final = ","
BROKERS_MAX: Final = 64
URLS_CHARACTERS_MAX: Final = 4096
"""What other brokers say of themselves is told to every client: so much of it at most."""
_SPARE: Final = 16


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Choice of what clients are told, with ActiveMQ's names and defaults.

    `filter` are patterns of the names of other brokers, of which one has to match; none: all may.
    """

    updates: bool = False
    updates_on_remove: bool = False
    rebalances: bool = False
    filter: tuple[re.Pattern[str], ...] = ()


class Cluster:
    """The broker itself by its own URLs, and the other ones that bridges lead to."""

    def __init__(self, own: tuple[str, ...], settings: ClusterSettings) -> None:
        self.own = SEPARATOR.join(own)
        self._settings = settings
        self._bridges: Counter[str] = Counter()
        self._urls = [self.own] if own else []
        self._told: list[tuple[Broker, Connection]] = []
        self._told_max = _SPARE

    def introduce(self, broker: Broker, connection: Connection) -> None:
        """Tell a new client, and have it told of changes if it can move.

        One that comes back after a failover stays where it is.
        """
        told = self._introduction()
        connection.put(told._replace(rebalances=False) if connection.reconnected else told)
        if not connection.fault_tolerant or not self._settings.updates:
            return
        if len(self._told) >= self._told_max:
            self._told = [each for each in self._told if _is_there(*each)]
            self._told_max = 2 * len(self._told) + _SPARE
        self._told.append((broker, connection))

    def came(self, name: str, urls: str) -> None:
        """Hear that a bridge leads to another broker, by what it says of itself."""
        if not urls or not self._settings.updates or not self._is_wanted(name):
            return
        if urls == self.own or len(urls) > URLS_CHARACTERS_MAX or not self._has_room(urls):
            return
        self._bridges[urls] += 1
        if urls not in self._urls:
            self._urls.append(urls)
            self._tell_all()

    def left(self, urls: str) -> None:
        """Hear that a bridge is gone."""
        if urls not in self._bridges:
            return
        self._bridges[urls] -= 1
        if not self._bridges[urls] and self._settings.updates_on_remove:
            del self._bridges[urls]
            self._urls.remove(urls)
            self._tell_all()

    def _has_room(self, urls: str) -> bool:
        """Tell whether another broker may be told of, instead of one that has left if need be."""
        if urls in self._bridges or len(self._bridges) < BROKERS_MAX:
            return True
        has_left = next((each for each, count in self._bridges.items() if not count), None)
        if has_left is None:
            return False
        del self._bridges[has_left]
        self._urls.remove(has_left)
        return True

    def _is_wanted(self, name: str) -> bool:
        patterns = self._settings.filter
        return not patterns or any(pattern.fullmatch(name) for pattern in patterns)

    def _tell_all(self) -> None:
        self._told = [each for each in self._told if _is_there(*each)]
        for _, connection in self._told:
            connection.put(self._introduction())

    def _introduction(self) -> Introduction:
        """Return what the next client is told: each one another first broker to rebalance."""
        told = Introduction(SEPARATOR.join(self._urls), "", self._settings.rebalances)
        if self._settings.rebalances:
            self._urls = [*self._urls[1:], *self._urls[:1]]
        return told


def _is_there(broker: Broker, connection: Connection) -> bool:
    return broker.connections.get(connection.identifier) is connection
