"""Placement of a backup's pod, where one node at a time can have the journal's volume."""

from lockkeeper_api.pod_names import ROLE_LABEL
from lockkeeper_operator.backups.subject import BackupSubject
from lockkeeper_operator.brokers.desired.metadata import selector_of
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import HOST_NAME_LABEL, MASTER

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODE_FIELD = "metadata.name"


def affinity(subject: BackupSubject) -> Manifest | None:
    """Return the affinity to where the volume is, None where any node will do.

    The Broker's pod may be on another node by the time that the backup's pod, or one that follows
    it, is placed: so that pod is named, and a node only for a volume that somebody else's pod has.
    """
    if subject.beside:
        found = {"matchLabels": dict(subject.beside)}
        term = {"topologyKey": HOST_NAME_LABEL, "labelSelector": found}
        return {"podAffinity": {REQUIRED: [term]}}
    if subject.journal.node:
        field = {"key": NODE_FIELD, "operator": "In", "values": [subject.journal.node]}
        return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}}
    return None


def is_beside(pod: Manifest, broker: str) -> bool:
    """Return whether *pod* has to be where one of *broker* is."""
    affinity = pod["spec"].get("affinity", {}).get("podAffinity", {})
    found = (term.get("labelSelector", {}) for term in affinity.get(REQUIRED, ()))
    wanted = selector_of(broker).items()
    return any(wanted <= each.get("matchLabels", {}).items() for each in found)


def only_node(pod: Manifest) -> str:
    """Return the one node that *pod* was made for, empty where it is none."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get(REQUIRED, {}).get("nodeSelectorTerms", ())
    fields = (field for term in terms for field in term.get("matchFields", ()))
    return next((str(each["values"][0]) for each in fields if each["key"] == NODE_FIELD), "")


def labels_beside(holder: Manifest | None, broker: str) -> dict[str, str]:
    """Return the labels by which *holder*, the pod that has the volume, is found wherever it goes.

    None for a pod that is not of *broker*. Of a master, so that no standby passes for it.
    """
    labels = {} if holder is None else holder["metadata"].get("labels", {})
    wanted = selector_of(broker)
    if not wanted.items() <= labels.items():
        return {}
    return {**wanted, ROLE_LABEL: MASTER} if labels.get(ROLE_LABEL) == MASTER else wanted
