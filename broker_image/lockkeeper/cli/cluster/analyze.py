"""`kubectl lockkeeper analyze`: a JournalAnalysis of a Broker, from its making to its results."""

import json
import subprocess
import tarfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from pydantic import ValidationError

from lockkeeper.cli.cluster.kubectl import Kubectl, KubectlError, Manifest
from lockkeeper.cli.cluster.making import labels_like, new_name
from lockkeeper.cli.cluster.objects import BROKERS, condition
from lockkeeper.cli.errors import CommandError, misused
from lockkeeper.cli.output import say
from lockkeeper_api.complaints import complaint
from lockkeeper_api.journal_analysis import NAME_CHARACTERS_MAX, JournalAnalysisSpec
from lockkeeper_api.meta import API_VERSION

ANALYSES = "journalanalyses.lockkeeper.dev"
KEPT_SECONDS = 3600
"""How long an analysis stays after its end, for a look at it and at its page."""
LOOK_SECONDS = 1.0
UNSEEN_SECONDS = 20.0
"""An operator that works has looked at a new analysis long before."""
PAGE_SECONDS = 120
PAGE = "index.html"
RULE_BROKEN = 3
"""Exit code where a rule was broken; the results are brought all the same."""
RESULTS_FOLDER = "/var/lib/lockkeeper-results"
"""Where the pod that serves the page has the results."""
WAY_OUT = "`lockkeeper analyze DIR` reads a journal's directory without a cluster"

Tell: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """Reports that a person asks for; *more* are fields of the spec by their names there."""

    reports: Sequence[str] = ()
    rules: Sequence[str] = ()
    more: dict[str, str] = field(default_factory=dict)
    executors: int | None = None


@dataclass(frozen=True)
class Outcome:
    """Result of an analysis: *path* of its page, or of the folder if it has none.

    *broken* tells of each rule that was broken, with its longest breach.
    """

    path: Path
    broken: Sequence[str]


def analyze(kubectl: Kubectl, broker: str, asked: Asked, out: Path, tell: Tell) -> Outcome:
    """Analyse the journal of *broker* and bring the results to *out*.

    Raises CommandError, with the driver's last lines if that failed.
    """
    manifest = analysis_of(broker, asked)
    try:
        manifest["metadata"]["labels"] = labels_like(kubectl.get(BROKERS, broker))
        kubectl.run("create", "--filename=-", text=json.dumps(manifest))
    except KubectlError as error:
        raise CommandError(f"{error}; {WAY_OUT}", error.code) from error
    name = str(manifest["metadata"]["name"])
    try:
        done = follow(kubectl, name, tell)
        tell("bringing the results here")
        run = done["status"]["history"][0]
        _bring(kubectl, name, str(run["name"]), out)
    except KeyboardInterrupt:
        say(f"{name} goes on in the cluster; `kubectl delete lkj {name}` ends it")
        raise
    page = out / PAGE
    return Outcome(page if page.exists() else out, run.get("brokenRules") or ())


def analysis_of(broker: str, asked: Asked) -> Manifest:
    """Return the analysis that is to be made. It is tried once: somebody is looking on.

    Raises CommandError for what no analysis can be asked.
    """
    spec: Manifest = {
        "source": {"broker": broker},
        "reports": list(asked.reports),
        "rules": list(asked.rules),
        "backoffLimit": 0,
        "ttlSecondsAfterFinished": KEPT_SECONDS,
        **asked.more,
    }
    if asked.executors is not None:
        spec["executors"] = {"instances": asked.executors}
    try:
        JournalAnalysisSpec.model_validate(spec)
    except ValidationError as error:
        found = (complaint(JournalAnalysisSpec, each) for each in error.errors())
        raise misused("; ".join(f"{path}: {reason}" for path, reason in found)) from error
    return {
        "apiVersion": API_VERSION,
        "kind": "JournalAnalysis",
        "metadata": {"name": new_name(broker, NAME_CHARACTERS_MAX)},
        "spec": spec,
    }


def follow(kubectl: Kubectl, name: str, tell: Tell) -> Manifest:
    """Wait until the analysis has succeeded, and return it; *tell* hears what goes on.

    Raises CommandError when it fails, or is deleted.
    """
    began = time.monotonic()
    while True:
        found = kubectl.find(ANALYSES, name)
        if found is None:
            raise CommandError(f"the analysis {name} was deleted")
        if condition(found, "Succeeded")["status"] == "True":
            return found
        failed = condition(found, "Failed")
        if failed["status"] == "True":
            raise CommandError(f"the analysis {name} failed:\n{failed['message']}")
        submitted = condition(found, "Submitted")
        if submitted["reason"] == "InvalidSpec":
            raise CommandError(f"the analysis {name} cannot be: {submitted['message']}")
        unseen = not found.get("status") and time.monotonic() - began > UNSEEN_SECONDS
        tell("waiting for the operator: does it run?" if unseen else step_of(found))
        time.sleep(LOOK_SECONDS)


def step_of(analysis: Manifest) -> str:
    """Return what goes on, in words."""
    told = str(analysis.get("status", {}).get("progressText") or "")
    running = condition(analysis, "Running")
    if running["reason"] == "ExecutorsWait":
        return f"{told or 'running'}: {running['message']}"
    if told:
        return told
    for kind in ("Submitted", "Running"):
        found = condition(analysis, kind)
        if found["status"] == "False":
            return f"{found['message']} ({found['reason']})"
    return "starting"


def _bring(kubectl: Kubectl, name: str, run: str, out: Path) -> None:
    """Copy the folder of a run out of the pod that serves it. Raises CommandError."""
    deployment = f"deployment/{name}-page"
    try:
        kubectl.in_time(PAGE_SECONDS, "rollout", "status", deployment)
        words = ("exec", deployment, "--", "tar", "-cf", "-", "-C", f"{RESULTS_FOLDER}/{run}", ".")
        with subprocess.Popen(
            kubectl.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as sender:
            assert sender.stdout is not None and sender.stderr is not None
            try:
                with tarfile.open(fileobj=sender.stdout, mode="r|") as archive:
                    archive.extractall(out, filter="data")
            except tarfile.TarError as error:
                said = sender.stderr.read().decode(errors="replace").strip()
                raise KubectlError(said or str(error)) from error
    except KubectlError as error:
        raise CommandError(
            f"it has succeeded, but the results could not be brought here: {error}; "
            f"`kubectl port-forward service/{name}-page 8080` leads to them"
        ) from error
