"""All stores of the operator."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lockkeeper_api.destination import DestinationSpec
from lockkeeper_operator.kubernetes.api.kinds import (
    BROKER,
    BROKER_NETWORK,
    CHILDREN,
    DESTINATION,
    JOURNAL_ANALYSIS,
    JOURNAL_BACKUP,
    LEASE,
    NAMESPACE,
    OPTIONAL_KINDS,
    POD,
    Kind,
)
from lockkeeper_operator.kubernetes.caches.store import Groups, Name, Store
from lockkeeper_operator.kubernetes.classes import class_selector, is_of
from lockkeeper_operator.kubernetes.manifests import Key, Manifest, key_of
from lockkeeper_operator.names import INSTANCE_LABEL, MANAGED_BY_LABEL

OWN_LABEL = (MANAGED_BY_LABEL, "lockkeeper-operator")
OWN = "=".join(OWN_LABEL)
BROKER_GROUP, TARGET_GROUP = "broker", "target"
WATCHED_CHILDREN = tuple(kind for kind in (*CHILDREN, *OPTIONAL_KINDS) if kind is not LEASE)
"""Leases change every few seconds each: they are read when they are needed."""
RESOURCES = (BROKER, DESTINATION, BROKER_NETWORK, JOURNAL_ANALYSIS, JOURNAL_BACKUP)
"""What people write."""
WATCHED = tuple(dict.fromkeys((*RESOURCES, POD, *WATCHED_CHILDREN)))

Told = Callable[[str, Manifest | None, Manifest | None], None]
"""Is told of a kind's object before and after each change."""
Analysed = Callable[[Manifest | None, Manifest | None], None]


@dataclass(frozen=True, slots=True)
class Target:
    """What a Destination stands for: a destination of a Broker."""

    namespace: str
    broker: str
    kind: str
    name: str


def target_of(destination: Manifest) -> Target:
    """Return what a Destination stands for, as far as its spec can be read."""
    metadata, spec = destination["metadata"], destination.get("spec", {})
    reference = spec.get("brokerRef", {})
    return Target(
        reference.get("namespace") or metadata["namespace"],
        reference.get("name", ""),
        spec.get("kind") or DestinationSpec.model_fields["kind"].default,
        spec.get("name") or metadata["name"],
    )


def selector_of(kind: Kind, class_name: str = "") -> str:
    """Return by which labels objects of a kind are watched, empty for all."""
    return class_selector(class_name) if kind in RESOURCES else OWN


class Caches:
    """Stores of what people write, of pods, and of children by their kinds.

    *changed* is told of all but analyses and backups, *analysed* and *saved* of those; an analysis
    that is a Broker's child is in two stores. Namespaces are put in by who reads one. Of what
    people write only that of the operator's class is kept; *class_name* is empty where it has none.
    """

    def __init__(
        self, changed: Told, analysed: Analysed, saved: Analysed, class_name: str = ""
    ) -> None:
        self._changed, self.class_name = changed, class_name
        self.brokers = self._store(BROKER, lambda _: ())
        self.destinations = self._store(DESTINATION, _groups_of_destination)
        self.networks = self._store(BROKER_NETWORK, lambda _: ())
        self.pods = self._store(POD, _groups_of_child)
        self.namespaces = self._store(NAMESPACE, lambda _: ())
        self.analyses = Store(JOURNAL_ANALYSIS, lambda _: (), analysed, self._is_mine)
        self.backups = Store(JOURNAL_BACKUP, lambda _: (), saved, self._is_mine)
        self.children = {
            kind.name: self._store(kind, _groups_of_child) for kind in WATCHED_CHILDREN
        }
        apart = (self.analyses, self.backups)
        self._by_kind = {
            kind: tuple(store for store in apart + self.stores() if store.kind is kind)
            for kind in WATCHED
        }

    def put(self, kind: Kind, manifest: Manifest) -> None:
        """Take over an object as the API server has it."""
        key, value = OWN_LABEL
        own = manifest["metadata"].get("labels", {}).get(key) == value
        for store in self._by_kind[kind]:
            if own or store.kind is not JOURNAL_ANALYSIS or store is self.analyses:
                store.put(manifest)
            else:
                store.drop(manifest)

    def drop(self, kind: Kind, manifest: Manifest) -> None:
        """Forget an object that is gone."""
        for store in self._by_kind[kind]:
            store.drop(manifest)

    def keep_only(
        self, kind: Kind, listed: Mapping[Name, int], namespace: str | None, version: str | None
    ) -> None:
        """Forget what is not among *listed*; see Store.keep_only."""
        for store in self._by_kind[kind]:
            store.keep_only(listed, namespace, version)

    def children_of(self, namespace: str, broker: str) -> dict[Key, Manifest]:
        """Return the objects that are labelled as a Broker's children, Leases apart."""
        return {
            key_of(child): child
            for store in self.children.values()
            for child in store.group(BROKER_GROUP, namespace, broker)
        }

    def stores(self) -> tuple[Store, ...]:
        """Return all stores."""
        first = (self.brokers, self.destinations, self.networks)
        return (*first, self.pods, self.namespaces, *self.children.values())

    def _store(self, kind: Kind, groups_of: Callable[[Manifest], Groups]) -> Store:
        def changed(before: Manifest | None, after: Manifest | None) -> None:
            self._changed(kind.name, before, after)

        if kind in RESOURCES:
            return Store(kind, groups_of, changed, self._is_mine)
        return Store(kind, groups_of, changed)

    def _is_mine(self, resource: Manifest) -> bool:
        return is_of(self.class_name, resource)


def _groups_of_child(manifest: Manifest) -> Groups:
    metadata = manifest["metadata"]
    instance = metadata.get("labels", {}).get(INSTANCE_LABEL, "")
    # Of thousands, each has read its own text of the same.
    return ((BROKER_GROUP, sys.intern(metadata.get("namespace", "")), sys.intern(instance)),)


def _groups_of_destination(manifest: Manifest) -> Groups:
    target = target_of(manifest)
    broker = (sys.intern(target.namespace), sys.intern(target.broker))
    return (
        (BROKER_GROUP, *broker),
        (TARGET_GROUP, *broker, sys.intern(target.kind), sys.intern(target.name)),
    )
