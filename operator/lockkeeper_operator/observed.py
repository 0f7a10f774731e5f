"""Observed state, as far as a plan needs to know it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lockkeeper_api.pod_names import ROLE_LABEL
from lockkeeper_operator.comparing import Path
from lockkeeper_operator.names import MASTER, REVISION_ANNOTATION, STANDBY
from lockkeeper_operator.steps import Conflict, Refused

Manifest: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str]
"""Kind and name of an object in the Broker's namespace."""

UNSCHEDULABLE = "Unschedulable"
RECOVERING = "recovering"
"""A broker that has the lock and reads the journal: the master to be."""
HOPELESS = frozenset(
    {
        "CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "InvalidImageName",
        "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError",
        "RunContainerError",
    }
)  # fmt: skip
"""Why containers wait, where waiting longer alone does not help."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a broker says of itself when the operator asks its admin endpoint.

    *takes_over* says of a standby that it is proven able to: it reads the journal's directory and
    is refused the lock for the one reason that another has it. *configuration* is the hash of
    what it runs with, *refused* that of one which it could not take over, *refusal* why.
    """

    role: str
    takes_over: bool = False
    epoch: int | None = None
    configuration: str | None = None
    refused: str | None = None
    refusal: str = ""
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of a Broker; *disrupted* says that its deletion has been decided."""

    name: str
    uid: str = ""
    revision: str = ""
    role: str = ""
    ready: bool = False
    terminating: bool = False
    broken: bool = False
    trouble: str = ""
    report: Report | None = None
    node: str = ""
    disrupted: bool = False

    @property
    def leads(self) -> bool:
        """Whether the broker in it is the master, or about to be."""
        return self.role in (MASTER, RECOVERING)

    @property
    def hopeless(self) -> str:
        """Why waiting longer alone does not help, empty for nothing: a node may yet be found."""
        return "" if self.trouble == UNSCHEDULABLE else self.trouble

    @property
    def takes_over(self) -> bool:
        """Whether the broker in it can be the next master."""
        able = self.report is not None and self.report.takes_over
        return able and self.ready and not self.terminating and self.role == STANDBY


@dataclass(frozen=True, slots=True)
class Observed:
    """A Broker's installation: objects of its namespace by kind and name, and its pods."""

    children: Mapping[Key, Manifest] = field(default_factory=dict)
    pods: tuple[Pod, ...] = ()
    stuck: Mapping[Key, Conflict | Refused] = field(default_factory=dict)
    """Children that could not be brought to what they are to be, when that was tried last."""
    tolerated: Mapping[Key, frozenset[Path]] = field(default_factory=dict)
    """What is in children against our will, and comes back however often it is removed."""
    cordoned: frozenset[str] = frozenset()
    """Names of the nodes that take no more pods."""
    gave_up: bool = False
    """Whether the master handed over and nobody took over in time: it is let be for a while."""


def key_of(manifest: Manifest) -> Key:
    """Return the key of an object."""
    return manifest["kind"], manifest["metadata"]["name"]


def pod_of(manifest: Manifest, report: Report | None = None) -> Pod:
    """Return what a plan needs to know of a pod.

    The role is what the broker says; its label only when it says nothing.
    """
    metadata, status = manifest["metadata"], manifest.get("status", {})
    label = metadata.get("labels", {}).get(ROLE_LABEL, "")
    trouble = _trouble(status)
    return Pod(
        name=metadata["name"],
        uid=metadata["uid"],
        revision=metadata.get("annotations", {}).get(REVISION_ANNOTATION, ""),
        role=report.role if report is not None else label,
        ready=_condition(status, "Ready") == "True",
        terminating="deletionTimestamp" in metadata,
        broken=bool(trouble),
        trouble=trouble,
        report=report,
        node=manifest.get("spec", {}).get("nodeName", ""),
        disrupted=_condition(status, "DisruptionTarget") == "True",
    )


def _condition(status: Manifest, kind: str) -> str:
    found = (each["status"] for each in status.get("conditions", ()) if each["type"] == kind)
    return next(found, "Unknown")


def _trouble(status: Manifest) -> str:
    """Return why the pod will not run without help, empty if nothing says so."""
    if status.get("phase") == "Failed":
        return status.get("reason") or "Failed"
    if _condition(status, "PodScheduled") == "False":
        return UNSCHEDULABLE
    for container in status.get("containerStatuses", ()):
        reason = container.get("state", {}).get("waiting", {}).get("reason", "")
        if reason in HOPELESS:
            return str(reason)
    return ""
