"""Placement of an analysis' pods, where volumes are that only one node has at a time."""

from lockkeeper_operator.analyses.desired.metadata import selector
from lockkeeper_operator.analyses.names import DRIVER, EXECUTOR, RESULTS_LABEL
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.kubernetes.patch import patched
from lockkeeper_operator.names import HOST_NAME_LABEL


def affinity(subject: AnalysisSubject, role: str) -> Manifest:
    """Return the affinity of pods with that *role*; what volumes demand wins over the spec's."""
    found: Manifest = subject.spec.pods.affinity or {}
    if subject.journal.node:
        found = patched(found, {"nodeAffinity": _on(subject.journal.node)})
    beside = [_beside(labels) for labels in _neighbours(subject, role)]
    if beside:
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": beside}
        found = patched(found, {"podAffinity": terms})
    return found


def _neighbours(subject: AnalysisSubject, role: str) -> list[dict[str, str]]:
    """Return the labels of pods that have a volume which is to be on this node, too."""
    if role == EXECUTOR:
        scattered = subject.journal.one_node and not subject.journal.node
        return [selector(subject, DRIVER)] if scattered else []
    # Whoever is first finds nobody, and may go anywhere: it is its own neighbour.
    return [{RESULTS_LABEL: subject.name}] if subject.served is not None else []


def _on(node: str) -> Manifest:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _beside(labels: dict[str, str]) -> Manifest:
    return {"topologyKey": HOST_NAME_LABEL, "labelSelector": {"matchLabels": labels}}
