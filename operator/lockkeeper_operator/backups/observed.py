"""Observed state of a backup."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lockkeeper_operator.backups.subject import BackupSubject
from lockkeeper_operator.kubernetes.jobs import (
    ENDED,
    Run,
    latest_first,
    runs_of_jobs,
    runs_of_snapshots,
)
from lockkeeper_operator.kubernetes.manifests import Key, Manifest

EPOCH = datetime.fromtimestamp(0, UTC)
REMOVED = "Removed"
"""State of a single backup whose run somebody removed before it had ended."""
GOING = frozenset({"Submitted", "Running"})
"""States of a run that has not ended."""
BEGUN = ENDED | GOING | {REMOVED}
"""States of a backup that was begun, and is not begun again by itself."""


@dataclass(frozen=True, slots=True)
class ObservedBackup:
    """A backup's installation: objects labelled as its own, its pods, and its status."""

    children: Mapping[Key, Manifest] = field(default_factory=dict)
    pods: tuple[Manifest, ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)
    knows_snapshots: bool = False
    """Whether the cluster knows VolumeSnapshots."""
    now: datetime = EPOCH
    """When this was so; without it nothing is due."""

    @property
    def runs(self) -> tuple[Run, ...]:
        """The Jobs that are there and the snapshots that stay, the latest first."""
        children = self.children.values()
        return latest_first((*runs_of_jobs(children), *runs_of_snapshots(children)))


def remembered_run(status: Mapping[str, Any]) -> str:
    """Return the name of the latest run that a *status* tells of, empty for none."""
    found = status.get("run")
    if found is None and status.get("state") in ENDED:
        # Written by an operator that told of a Job or a snapshot alone.
        found = status.get("job") or status.get("snapshot")
    return found or ""


def was_begun(status: Mapping[str, Any], subject: BackupSubject) -> bool:
    """Return whether a *status* tells that a single backup was there, if only for a moment."""
    return subject.is_run(remembered_run(status)) and status.get("state") in BEGUN


def is_hidden(observed: ObservedBackup, subject: BackupSubject) -> bool:
    """Return whether the run that the status tells of may be there all the same, unseen.

    Snapshots are known by their claim, and of a Broker that is gone nobody knows which it was.
    """
    if subject.spec.target.snapshot is None or observed.status.get("state") not in GOING:
        return False
    return not (observed.knows_snapshots and subject.journal.claim)
