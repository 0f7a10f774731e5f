"""Keys to look at when an object has changed."""

from collections.abc import Callable

from lockkeeper_operator.kubernetes.api.kinds import (
    BROKER,
    BROKER_NETWORK,
    DESTINATION,
    NAMESPACE,
    POD,
)
from lockkeeper_operator.kubernetes.caches.caches import (
    BROKER_GROUP,
    TARGET_GROUP,
    Caches,
    Target,
    target_of,
)
from lockkeeper_operator.kubernetes.caches.store import Name
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import INSTANCE_LABEL, NETWORK_INSTANCE
from lockkeeper_operator.polling.poll_state import BrokerKey, PollStates
from lockkeeper_operator.process.queue import WorkQueue


class Wakes:
    """Puts keys into the queues of Brokers, Destinations, networks, and Brokers whose pods are
    asked.
    """

    def __init__(self) -> None:
        self.brokers: WorkQueue[BrokerKey] = WorkQueue()
        self.destinations: WorkQueue[Name] = WorkQueue()
        self.networks: WorkQueue[Name] = WorkQueue()
        self.asking: WorkQueue[BrokerKey] = WorkQueue()
        self.brokers_version = 0
        """Changes with any Broker, and with labels by which namespaces are let in."""
        self.poll_states = PollStates()

    def changed(
        self, caches: Caches, kind: str, before: Manifest | None, after: Manifest | None
    ) -> None:
        """Take note of an object that was *before* and is *after*; None where it is not there."""
        if _is_another(before, after):
            self.changed(caches, kind, before, None)
            before = None
        present = after or before
        assert present is not None
        metadata = present["metadata"]
        if kind == BROKER.name:
            self._broker(caches, (metadata["namespace"], metadata["name"]), before, after)
        elif kind == DESTINATION.name:
            self._destination(caches, present, before, after)
        elif kind == BROKER_NETWORK.name:
            self.networks.add((metadata["namespace"], metadata["name"]))
        elif kind == NAMESPACE.name:
            if before is not None:
                self._namespace(caches, metadata["name"])
                self._brokers_changed(caches)
        elif kind == POD.name:
            self._pod(broker_of(metadata))
        else:
            self._child(*broker_of(metadata))

    def destinations_of(self, caches: Caches, broker: BrokerKey) -> None:
        """Have all Destinations of a Broker looked at."""
        for name in caches.destinations.names_in(BROKER_GROUP, *broker):
            self.destinations.add(name)

    def _broker(
        self, caches: Caches, key: BrokerKey, before: Manifest | None, after: Manifest | None
    ) -> None:
        self.brokers.add(key)
        if (_essence(before), _labels(before)) != (_essence(after), _labels(after)):
            self._brokers_changed(caches)
        if _essence(before) != _essence(after):
            self.destinations_of(caches, key)
            self.asking.add(key)

    def _destination(
        self,
        caches: Caches,
        present: Manifest,
        before: Manifest | None,
        after: Manifest | None,
    ) -> None:
        metadata, target = present["metadata"], target_of(present)
        self.destinations.add((metadata["namespace"], metadata["name"]))
        if before is None:
            self.asking.add((target.namespace, target.broker))
        if after is None:
            # Another that stands for the same may be next in line.
            for name in _standing_for(caches, target):
                self.destinations.add(name)

    def _namespace(self, caches: Caches, namespace: str) -> None:
        """Whoever comes or goes by its labels keeps others out, or no more."""
        for name in caches.destinations.names():
            found = caches.destinations.get(*name) if name[0] == namespace else None
            if found is not None:
                for each in _standing_for(caches, target_of(found)):
                    self.destinations.add(each)

    def all_networks(self, caches: Caches) -> None:
        """Have all networks looked at: there are few."""
        for name in caches.networks.names():
            self.networks.add(name)

    def _brokers_changed(self, caches: Caches) -> None:
        self.brokers_version += 1
        self.all_networks(caches)

    def _child(self, namespace: str, instance: str) -> None:
        """Look at whose child it is: a network's, or a Broker's."""
        if instance.startswith(NETWORK_INSTANCE):
            self.networks.add((namespace, instance.removeprefix(NETWORK_INSTANCE)))
        else:
            self.brokers.add((namespace, instance))

    def _pod(self, broker: BrokerKey) -> None:
        """Ask first: what a pod says of itself counts more than what its object says."""
        state = self.poll_states.get(broker)
        if state is None:
            self.brokers.add(broker)
        else:
            state.stale = True
            self.asking.add(broker)


def asked_anew(queue: WorkQueue[Name]) -> Callable[[Manifest | None, Manifest | None], None]:
    """Return what puts an object into *queue* that is new, asks for something else, or is gone.

    Statuses are the operator's own doing.
    """

    def changed(before: Manifest | None, after: Manifest | None) -> None:
        if _asked(before) != _asked(after):
            present = after or before
            assert present is not None
            queue.add((present["metadata"]["namespace"], present["metadata"]["name"]))

    return changed


def _asked(resource: Manifest | None) -> tuple[object, ...]:
    """Return which object it is, and what it asks for; nothing for none."""
    return () if resource is None else (resource["metadata"].get("uid"), resource.get("spec"))


def _is_another(before: Manifest | None, after: Manifest | None) -> bool:
    """Return whether *after* has the name of *before* alone, whose end went unseen."""
    if before is None or after is None:
        return False
    return bool(before["metadata"].get("uid") != after["metadata"].get("uid"))


def _standing_for(caches: Caches, target: Target) -> tuple[Name, ...]:
    """Return all Destinations that stand for the same."""
    group = (TARGET_GROUP, target.namespace, target.broker, target.kind, target.name)
    return caches.destinations.names_in(*group)


def broker_of(metadata: Manifest) -> BrokerKey:
    """Return whose pod or child an object is, by its labels."""
    labels = metadata.get("labels", {})
    return metadata.get("namespace", ""), labels.get(INSTANCE_LABEL, "")


def _labels(broker: Manifest | None) -> dict[str, str]:
    """Return by what networks select a Broker."""
    found: dict[str, str] = (broker or {"metadata": {}})["metadata"].get("labels", {})
    return found


def _essence(broker: Manifest | None) -> tuple[object, ...]:
    """Return what of a Broker its Destinations depend on."""
    if broker is None:
        return ()
    metadata = broker["metadata"]
    return metadata["uid"], metadata.get("generation"), "deletionTimestamp" in metadata
