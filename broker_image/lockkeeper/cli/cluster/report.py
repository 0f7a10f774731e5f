"""`kubectl lockkeeper report`: a file for whoever is asked for help; no secrets, no messages."""

import io
import json
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from lockkeeper.cli.cluster.kubectl import Kubectl, KubectlError, Manifest
from lockkeeper.cli.cluster.objects import BROKERS, CONTAINER, DESTINATIONS, NETWORKS, pods_of

CHILDREN = (
    "statefulsets.apps", "services", "configmaps", "persistentvolumeclaims", "serviceaccounts",
    "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io",
    "poddisruptionbudgets.policy", "networkpolicies.networking.k8s.io",
    "leases.coordination.k8s.io", "secrets",
)  # fmt: skip
LOG_LINES_MAX = 10_000
HIDDEN = "(left out)"
OPERATOR_SELECTOR = "app.kubernetes.io/name=lockkeeper-operator"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def write_report(kubectl: Kubectl, name: str, target: Path) -> list[str]:
    """Write the report about the Broker *name* to *target*, a .tar.gz.

    Returns what could not be had, and why. Raises KubectlError when there is no such Broker.
    """
    kubectl.get(BROKERS, name)
    missing: list[str] = []
    with tarfile.open(target, "w:gz") as archive:
        for path, make in _parts(kubectl, name):
            try:
                _add(archive, f"{name}/{path}", make())
            except KubectlError as error:
                missing.append(f"{path}: {error}")
        if missing:
            _add(archive, f"{name}/missing.txt", "".join(f"{line}\n" for line in missing))
    return missing


def harmless(manifest: Manifest) -> Manifest:
    """Return an object without what nobody else should know: the contents of Secrets."""
    kept = json.loads(json.dumps(manifest))
    kept["metadata"].pop("managedFields", None)
    kept["metadata"].get("annotations", {}).pop(LAST_APPLIED, None)
    if kept.get("kind") == "Secret":
        for part in ("data", "stringData"):
            if part in kept:
                kept[part] = dict.fromkeys(kept[part], HIDDEN)
    for variable in _variables(kept):
        if "value" in variable:
            variable["value"] = HIDDEN
    return dict(kept)


def _variables(part: Any) -> Iterator[dict[str, Any]]:
    """Yield the variables of all environments, wherever they are: in pods, templates, patches."""
    if isinstance(part, list):
        for item in part:
            yield from _variables(item)
    if isinstance(part, dict):
        for name, value in part.items():
            if name == "env" and isinstance(value, list):
                yield from (each for each in value if isinstance(each, dict))
            else:
                yield from _variables(value)


def _parts(kubectl: Kubectl, name: str) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the files of the report and how each is made."""
    selector = f"--selector=app.kubernetes.io/instance={name}"
    yield "broker.yaml", lambda: _yaml([kubectl.get(BROKERS, name)])
    yield "networks.yaml", lambda: _yaml(kubectl.list(NETWORKS))
    yield "destinations.yaml", lambda: _yaml(_destinations(kubectl, name))
    yield "pods.yaml", lambda: _yaml(pods_of(kubectl, name))
    for kind in CHILDREN:
        path = f"{kind.partition('.')[0]}.yaml"
        yield path, lambda kind=kind: _yaml(kubectl.list(kind, selector))  # type: ignore[misc]
    yield "events.txt", lambda: kubectl.run("get", "events", "--sort-by=.lastTimestamp")
    yield "versions.txt", lambda: kubectl.run("version")
    for pod in pods_of(kubectl, name):
        yield from _of_pod(kubectl, pod["metadata"]["name"])
    yield "operator.log", lambda: _operator_log(kubectl)


def _of_pod(kubectl: Kubectl, pod: str) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield what a pod itself tells: logs of now and before, its status."""
    logs = ("logs", pod, f"--container={CONTAINER}", f"--tail={LOG_LINES_MAX}")
    yield f"{pod}.log", lambda: kubectl.run(*logs)
    yield f"{pod}.previous.log", lambda: kubectl.run(*logs, "--previous")
    status = ("exec", pod, f"--container={CONTAINER}", "--", "lockkeeper", "status", "--json")
    yield f"{pod}.status.json", lambda: kubectl.run(*status)


def _operator_log(kubectl: Kubectl) -> str:
    """Return what the operator's pods say, wherever they run."""
    selector = f"--selector={OPERATOR_SELECTOR}"
    pods = kubectl.list("pods", "--all-namespaces", selector)
    homes = sorted({pod["metadata"]["namespace"] for pod in pods})
    words = ("logs", selector, f"--tail={LOG_LINES_MAX}", "--prefix")
    return "".join(kubectl.in_namespace(home).run(*words) for home in homes)


def _destinations(kubectl: Kubectl, name: str) -> list[Manifest]:
    found = kubectl.list(DESTINATIONS)
    return [each for each in found if each["spec"]["brokerRef"]["name"] == name]


def _yaml(manifests: list[Manifest]) -> str:
    return yaml.safe_dump_all([harmless(each) for each in manifests], sort_keys=False)


def _add(archive: tarfile.TarFile, path: str, text: str) -> None:
    content = text.encode()
    entry = tarfile.TarInfo(path)
    entry.size, entry.mtime = len(content), int(time.time())
    archive.addfile(entry, io.BytesIO(content))
