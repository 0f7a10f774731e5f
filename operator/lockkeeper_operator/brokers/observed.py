"""Observed state, as far as a plan needs to know it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lockkeeper_api.pod_names import ROLE_LABEL
from lockkeeper_operator.kubernetes.children.comparing import Path
from lockkeeper_operator.kubernetes.children.steps import Conflict, Refused
from lockkeeper_operator.kubernetes.manifests import Key, Manifest
from lockkeeper_operator.kubernetes.pods import (
    PENDING,
    UNSCHEDULABLE,
    condition_of,
    trouble_of,
)
from lockkeeper_operator.names import MASTER, REVISION_ANNOTATION, STANDBY
from lockkeeper_operator.polling.report import Report

RECOVERING = "recovering"
"""A broker that has the lock and reads the journal: the master to be."""


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of a Broker; *disrupted* says that its deletion has been decided.

    *selected* says that its label calls it the master, which Services for clients look for.
    *begun* says that its containers have run, if only once.
    """

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
    selected: bool = False
    begun: bool = True

    @property
    def reached(self) -> bool:
        """Whether the Services for clients lead to it: Kubernetes takes no other endpoints."""
        return self.selected and self.ready and not self.terminating

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
    answers: Mapping[Key, Manifest] = field(default_factory=dict)
    """What the API server made of children that it makes otherwise than they were asked for."""
    cordoned: frozenset[str] = frozenset()
    """Names of the nodes that take no more pods."""
    bootstrap_failures: Mapping[str, str] = field(default_factory=dict)
    """Last words of Jobs that were to fill the journal, by their names."""
    filling: Mapping[str, str] = field(default_factory=dict)
    """Pods that fill the journal at present: the uids of their Jobs, by their names."""
    gave_up: bool = False
    """Whether the master handed over and nobody took over in time, or for long: it is let be."""
    has_served: bool = False
    """Whether one of its brokers has been the master, if only once."""

    def must_leave(self, pod: Pod) -> bool:
        """Return whether *pod* is to leave its node: the node is cordoned, or its end decided."""
        return pod.disrupted or pod.node in self.cordoned


def pod_of(manifest: Manifest, report: Report | None = None) -> Pod:
    """Return what a plan needs to know of a pod.

    The role is what the broker says; its label only when it says nothing.
    """
    metadata = manifest["metadata"]
    label = metadata.get("labels", {}).get(ROLE_LABEL, "")
    trouble = trouble_of(manifest)
    return Pod(
        name=metadata["name"],
        uid=metadata["uid"],
        revision=metadata.get("annotations", {}).get(REVISION_ANNOTATION, ""),
        role=report.role if report is not None else label,
        ready=condition_of(manifest, "Ready") == "True",
        terminating="deletionTimestamp" in metadata,
        broken=bool(trouble),
        trouble=trouble,
        report=report,
        node=manifest.get("spec", {}).get("nodeName", ""),
        disrupted=condition_of(manifest, "DisruptionTarget") == "True",
        selected=label == MASTER,
        begun=manifest.get("status", {}).get("phase") != PENDING,
    )
