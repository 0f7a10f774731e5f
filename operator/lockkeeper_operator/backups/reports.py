"""Reports of the pods that copied: what a backup is, or why there is none."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError

from lockkeeper_api.journal_backup import BackupResult
from lockkeeper_operator.kubernetes.jobs import JOB_LABEL, ends_of, failures_of
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.kubernetes.pods import trouble_of

FIELDS = ("place", "takenAt", "mark", "epoch", "files", "size", "pending")


@dataclass(frozen=True, slots=True)
class Reports:
    """What is known of the pods of each Job: results of those that succeeded, last words of others,
    and what keeps the latest from running, empty for nothing.
    """

    results: dict[str, BackupResult]
    failures: dict[str, str]
    troubles: dict[str, str]


def reports_of(pods: Iterable[Manifest]) -> Reports:
    """Return what there is to say of *pods*, by the names of their Jobs; the latest pod counts."""
    ended = sorted(pods, key=lambda each: str(each["metadata"].get("creationTimestamp", "")))
    found = Reports({}, failures_of(ended), {})
    for pod in ended:
        job = pod["metadata"].get("labels", {}).get(JOB_LABEL, "")
        found.troubles[job] = _trouble(pod, found.failures.get(job, ""))
        for end in ends_of(pod):
            result = None if end.get("exitCode") else _result(str(end.get("message", "")))
            if result is not None:
                found.results[job] = result
    return found


def _trouble(pod: Manifest, last_words: str) -> str:
    """Return why no pod runs; after one that failed, with its *last_words*, another one comes."""
    trouble = trouble_of(pod)
    if pod.get("status", {}).get("phase") != "Failed":
        return trouble
    return f"the one before failed: {last_words or trouble}"


def _result(said: str) -> BackupResult | None:
    """Return the report of a pod that succeeded, None for what is no report."""
    try:
        told = json.loads(said)
        return BackupResult.model_validate({name: told[name] for name in FIELDS})
    except (ValueError, KeyError, TypeError, ValidationError):
        return None
