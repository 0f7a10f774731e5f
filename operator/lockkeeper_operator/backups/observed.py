"""Observed state of a backup."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lockkeeper_operator.kubernetes.jobs import Run, runs_of_jobs
from lockkeeper_operator.kubernetes.manifests import Key, Manifest


@dataclass(frozen=True, slots=True)
class ObservedBackup:
    """A backup's installation: objects labelled as its own, its pods, and its status."""

    children: Mapping[Key, Manifest] = field(default_factory=dict)
    pods: tuple[Manifest, ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The Jobs that are there, the latest first."""
        return runs_of_jobs(self.children.values())
