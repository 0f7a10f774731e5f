"""Place of an analysis' journal, as far as pods need to know it."""

from dataclasses import dataclass
from typing import Any

from lockkeeper_api.analysis.source import Source
from lockkeeper_api.cluster.security import Security
from lockkeeper_api.cluster.storage import Storage
from lockkeeper_operator.kubernetes.manifests import Manifest

OWN_GROUP = 185
"""That of the image's user; given to volumes that are the analysis's own."""
EXCLUSIVE = "ReadWriteOncePod"
CLAIM_EXCLUSIVE = "ClaimExclusive"
"""The problem that only a snapshot can read the volume."""
SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})


@dataclass(frozen=True, slots=True)
class Journal:
    """A journal to be read: in a *claim*, at *path* within it, or at a *url*.

    *group* is that of its files, which pods get; a volume that is mounted read-only keeps its own.
    *one_node* says that the volume can be on one node at a time: *node*, if it is there already.
    *snapshot* is what the claim has to be made of. *problem* and *why* tell why the journal cannot
    be read now.
    """

    claim: str = ""
    path: str = ""
    url: str = ""
    group: int = OWN_GROUP
    one_node: bool = False
    node: str = ""
    snapshot: str = ""
    problem: str = ""
    why: str = ""


def journal_of(
    name: str,
    source: Source,
    broker: Manifest | None = None,
    claim: Manifest | None = None,
    node: str = "",
) -> Journal:
    """Return where the journal of the analysis *name* is.

    *broker* is the Broker that *source* names, *claim* the claim of `claim_name`, *node* where a
    pod has that claim mounted now: each as it was read, None or empty where there is none.
    """
    if source.path is not None:
        return Journal(url=source.path)
    if source.snapshot is not None:
        return Journal(
            claim=journal_claim(name),
            path=source.snapshot.path.strip("/"),
            group=source.snapshot.group or OWN_GROUP,
            one_node=True,
            node=node,
            snapshot=source.snapshot.name,
        )
    if source.broker is not None and broker is None:
        return Journal(problem="BrokerMissing", why=f"there is no Broker {source.broker}")
    wanted = claim_name(name, source, broker)
    if claim is None:
        return Journal(claim=wanted, problem="ClaimMissing", why=f"there is no claim {wanted}")
    modes = set(claim.get("spec", {}).get("accessModes", ()))
    if modes == {EXCLUSIVE}:
        why = f"claim {wanted} is {EXCLUSIVE}: only a snapshot of it can be read by another pod"
        return Journal(claim=wanted, problem=CLAIM_EXCLUSIVE, why=why)
    path, group = _within(source, broker)
    one_node = not modes & SHARED
    return Journal(wanted, path, group=group, one_node=one_node, node=node if one_node else "")


def claim_name(name: str, source: Source, broker: Manifest | None) -> str:
    """Return the claim that holds the journal, empty where there is none."""
    if source.claim is not None:
        return source.claim.name
    if source.snapshot is not None:
        return journal_claim(name)
    if source.broker is None or broker is None:
        return ""
    return storage_of(broker).existing_claim or f"{source.broker}-journal"


def journal_claim(name: str) -> str:
    """Return the name of the claim that is made of a snapshot."""
    return f"{name}-snapshot"


def _within(source: Source, broker: Manifest | None) -> tuple[str, int]:
    """Return the directory within the volume, and the group of the files there."""
    if source.claim is not None:
        return source.claim.path.strip("/"), source.claim.group or OWN_GROUP
    return storage_of(broker).path.strip("/"), security_of(broker).fs_group


def storage_of(broker: Manifest | None) -> Storage:
    """Return where a Broker says that its journal is, whatever is wrong with the rest of it."""
    return Storage.model_validate(_said(broker, "storage"))


def security_of(broker: Manifest | None) -> Security:
    """Return whose the journal's files are, by a Broker's words alone."""
    return Security.model_validate(_said(broker, "security"))


def _said(broker: Manifest | None, part: str) -> dict[str, Any]:
    found: dict[str, Any] = (broker or {}).get("spec", {}).get(part, {})
    return found
