"""Goals of Brokers, and their children as they are once a plan was carried out."""

from copy import deepcopy
from typing import Any

from cluster_objects import subject

from lockkeeper_operator.brokers.desired.target import Desired, desired_of
from lockkeeper_operator.brokers.observed import Observed
from lockkeeper_operator.brokers.plan import plan
from lockkeeper_operator.kubernetes.children.steps import Create
from lockkeeper_operator.kubernetes.manifests import Key, Manifest, key_of

KEY = ("StatefulSet", "departures")


def desired(replicas: int, **options: Any) -> Desired:
    return desired_of(subject(replicas=replicas, **options))


def children(goal: Desired) -> dict[Key, Manifest]:
    """Return the children as the API server has them once a plan was carried out."""
    found: dict[Key, Manifest] = {}
    for step in plan(Observed(), goal):
        assert isinstance(step, Create)
        child = deepcopy(step.manifest)
        child["metadata"] |= {"uid": "uid", "resourceVersion": "7"}
        found[key_of(child)] = child
    found[KEY]["metadata"]["generation"] = 2
    found[KEY]["status"] = {"observedGeneration": 2}
    return found
