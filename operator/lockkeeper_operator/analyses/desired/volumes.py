"""Volumes of an analysis' pods: the journal, a history, results, room for temporaries."""

from lockkeeper_operator.analyses.names import (
    DRIVER,
    HISTORY_PATH,
    JOURNAL_PATH,
    PAGE,
    RESULTS_PATH,
    SETTINGS_PATH,
)
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import TEMPORARY_PATH

JOURNAL, RESULTS, TEMPORARY, SETTINGS = "journal", "results", "temporary", "settings"
HISTORY = "history"


def results_claim(subject: AnalysisSubject) -> str:
    """Return the claim that results are written to, empty where there is none."""
    if subject.served is not None:
        return subject.page
    written = subject.spec.output.claim
    return written.name if written is not None else ""


def history_claim(subject: AnalysisSubject) -> str:
    """Return the claim that records are kept in, empty where there is none."""
    history = subject.spec.history
    return history.claim.name if history is not None and history.claim is not None else ""


def volumes(subject: AnalysisSubject, role: str) -> list[Manifest]:
    """Return the volumes of a pod; read-only claims keep the owners that their files have."""
    found: list[Manifest] = [{"name": TEMPORARY, "emptyDir": {}}]
    if subject.journal.claim:
        source: Manifest = {"claimName": subject.journal.claim}
        if not subject.journal.snapshot:
            # A claim of a snapshot is the analysis's own, and given to its group.
            source["readOnly"] = True
        found.append({"name": JOURNAL, "persistentVolumeClaim": source})
    if role != PAGE and history_claim(subject):
        kept = {"claimName": history_claim(subject)}
        found.append({"name": HISTORY, "persistentVolumeClaim": kept})
    if role == DRIVER and results_claim(subject):
        results = {"claimName": results_claim(subject)}
        found.append({"name": RESULTS, "persistentVolumeClaim": results})
    if role == DRIVER and subject.engine == "native":
        found.append({"name": SETTINGS, "configMap": {"name": subject.account}})
    return found


def mounts(subject: AnalysisSubject, role: str) -> list[Manifest]:
    """Return where a container has them: the journal read-only wherever it is."""
    found: list[Manifest] = [{"name": TEMPORARY, "mountPath": TEMPORARY_PATH}]
    if subject.journal.claim:
        found.append({"name": JOURNAL, "mountPath": JOURNAL_PATH, "readOnly": True})
    if role != PAGE and history_claim(subject):
        mount: Manifest = {"name": HISTORY, "mountPath": HISTORY_PATH}
        if role != DRIVER:
            mount["readOnly"] = True
        found.append(mount)
    if role == DRIVER and results_claim(subject):
        found.append({"name": RESULTS, "mountPath": RESULTS_PATH})
    if role == DRIVER and subject.engine == "native":
        found.append({"name": SETTINGS, "mountPath": SETTINGS_PATH, "readOnly": True})
    return found
