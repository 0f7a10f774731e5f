"""Reports of the pods that copied: what a backup is, or why there is none."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError

from lockkeeper_api.journal_backup import BackupResult
from lockkeeper_operator.kubernetes.jobs import JOB_LABEL
from lockkeeper_operator.kubernetes.manifests import Manifest

FIELDS = ("place", "takenAt", "mark", "epoch", "files", "size", "pending")
LINES = 5
"""Of a failed pod's log that are told."""


@dataclass(frozen=True, slots=True)
class Reports:
    """What the pods of each Job said: results of those that succeeded, last words of others."""

    results: dict[str, BackupResult]
    failures: dict[str, str]


def reports_of(pods: Iterable[Manifest]) -> Reports:
    """Return what *pods* said in the end, by the names of their Jobs; the latest pod counts."""
    found = Reports({}, {})
    for pod in sorted(pods, key=lambda each: str(each["metadata"].get("creationTimestamp", ""))):
        job = pod["metadata"].get("labels", {}).get(JOB_LABEL, "")
        for container in pod.get("status", {}).get("containerStatuses", ()):
            ended = container.get("state", {}).get("terminated")
            if ended is None:
                continue
            said = str(ended.get("message", ""))
            if ended.get("exitCode"):
                last = "\n".join(said.strip().splitlines()[-LINES:])
                found.failures[job] = last or f"exit code {ended['exitCode']}"
            elif (result := _result(said)) is not None:
                found.results[job] = result
    return found


def _result(said: str) -> BackupResult | None:
    """Return the report of a pod that succeeded, None for what is no report."""
    try:
        told = json.loads(said)
        return BackupResult.model_validate({name: told[name] for name in FIELDS})
    except (ValueError, KeyError, TypeError, ValidationError):
        return None
