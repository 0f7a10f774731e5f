"""All stores of the operator, and the reflectors that keep them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lockkeeper_api.destination import DestinationSpec
from lockkeeper_operator.api.kinds import (
    BROKER,
    CHILDREN,
    DESTINATION,
    LEASE,
    NAMESPACE,
    POD,
    Kind,
)
from lockkeeper_operator.api.server import ApiServer
from lockkeeper_operator.caches.reflector import Reflector, Watcher
from lockkeeper_operator.caches.store import Groups, Store
from lockkeeper_operator.names import INSTANCE_LABEL, MANAGED_BY_LABEL
from lockkeeper_operator.observed import Key, Manifest, key_of

OWN = f"{MANAGED_BY_LABEL}=lockkeeper-operator"
BROKER_GROUP, TARGET_GROUP = "broker", "target"

Told = Callable[[str, Manifest | None, Manifest | None], None]
"""Is told of a kind's object before and after each change."""


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


class Caches:
    """Stores of Brokers, Destinations, pods, namespaces, and of children by their kinds."""

    def __init__(
        self,
        api: ApiServer,
        namespaces: Sequence[str] | None,
        changed: Told,
        told: Watcher | None = None,
    ) -> None:
        """*namespaces* None stands for all; *changed* is told of all but namespaces."""
        self._api, self._told, self._changed = api, told, changed
        self._namespaces: Sequence[str | None] = (None,) if namespaces is None else namespaces
        self.reflectors: list[Reflector] = []
        self.brokers = self._store(BROKER, lambda _: ())
        self.destinations = self._store(DESTINATION, _groups_of_destination)
        self.pods = self._store(POD, _groups_of_child)
        self.namespaces = self._store(NAMESPACE, lambda _: ())
        self.children = {kind.name: self._store(kind, _groups_of_child) for kind in CHILDREN}

    def start(self, group: asyncio.TaskGroup, kinds: Sequence[Kind] = ()) -> None:
        """Begin to keep all stores, or those of more *kinds* of children."""
        if kinds:
            for kind in kinds:
                self.children[kind.name] = self._store(kind, _groups_of_child)
                self._keep(group, kind, self.children[kind.name], OWN)
            return
        self._keep(group, BROKER, self.brokers)
        self._keep(group, DESTINATION, self.destinations)
        self._keep(group, POD, self.pods, OWN)
        if None in self._namespaces:
            self._keep(group, NAMESPACE, self.namespaces, metadata_only=True)
        for kind in CHILDREN:
            self._keep(group, kind, self.children[kind.name], OWN, metadata_only=kind is LEASE)

    async def listed(self) -> None:
        """Wait until every store has been complete."""
        for reflector in tuple(self.reflectors):
            await reflector.listed.wait()

    def children_of(self, namespace: str, broker: str) -> dict[Key, Manifest]:
        """Return the objects that are labelled as a Broker's children."""
        return {
            key_of(child): child
            for store in self.children.values()
            for child in store.group(BROKER_GROUP, namespace, broker)
        }

    def stores(self) -> tuple[Store, ...]:
        """Return all stores."""
        first = (self.brokers, self.destinations, self.pods, self.namespaces)
        return (*first, *self.children.values())

    def _store(self, kind: Kind, groups_of: Callable[[Manifest], Groups]) -> Store:
        def changed(before: Manifest | None, after: Manifest | None) -> None:
            self._changed(kind.name, before, after)

        return Store(kind, groups_of, changed)

    def _keep(
        self,
        group: asyncio.TaskGroup,
        kind: Kind,
        store: Store,
        selector: str = "",
        metadata_only: bool = False,
    ) -> None:
        for namespace in self._namespaces:
            reflector = Reflector(
                self._api, kind, store, namespace, selector, metadata_only, self._told
            )
            self.reflectors.append(reflector)
            group.create_task(reflector.run(), name=f"watch {kind.plural} {namespace or ''}")


def _groups_of_child(manifest: Manifest) -> Groups:
    metadata = manifest["metadata"]
    instance = metadata.get("labels", {}).get(INSTANCE_LABEL, "")
    return ((BROKER_GROUP, metadata.get("namespace", ""), instance),)


def _groups_of_destination(manifest: Manifest) -> Groups:
    target = target_of(manifest)
    return (
        (BROKER_GROUP, target.namespace, target.broker),
        (TARGET_GROUP, target.namespace, target.broker, target.kind, target.name),
    )
