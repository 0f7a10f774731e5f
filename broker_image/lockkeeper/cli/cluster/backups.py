"""`kubectl lockkeeper backup` and `restore`: a backup made now, a Broker that begins with one."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pydantic import ValidationError

from lockkeeper.cli.cluster.kubectl import Kubectl, Manifest
from lockkeeper.cli.cluster.making import labels_like, new_name
from lockkeeper.cli.cluster.objects import BROKERS, condition
from lockkeeper.cli.errors import CommandError, misused
from lockkeeper_api.broker import NAME_CHARACTERS_MAX as BROKER_CHARACTERS_MAX
from lockkeeper_api.cluster.bootstrap import Bootstrap
from lockkeeper_api.complaints import complaint
from lockkeeper_api.journal_backup import NAME_CHARACTERS_MAX, JournalBackupSpec
from lockkeeper_api.meta import API_VERSION, ApiModel

BACKUPS = "journalbackups.lockkeeper.dev"
LOOK_SECONDS = 1.0
UNSEEN_SECONDS = 20.0
"""An operator that works has looked at a new resource long before."""
OUTER_ADDRESSES = ("route", "advertisedUrls")
DNS_NAMES = tuple(
    f"external-dns.alpha.kubernetes.io/{name}" for name in ("hostname", "internal-hostname")
)
"""Annotations by which external-dns writes a Service's address behind a name."""

Tell: TypeAlias = Callable[[str], None]


def asked(
    claim: str | None, path: str | None, url: str | None, image: str | None, credentials: str | None
) -> dict[str, Any]:
    """Return the fields of a JournalBackup that a command line gives."""
    target: dict[str, Any] = {}
    if claim is not None:
        target["claim"] = {"name": claim} if path is None else {"name": claim, "path": path}
    if url is not None:
        target["url"] = url
    found: dict[str, Any] = {"target": target} if target else {}
    if image is not None:
        found["image"] = {"name": image}
    if credentials is not None:
        found["credentials"] = credentials
    return found


def back_up(kubectl: Kubectl, broker: str, fields: Mapping[str, Any], tell: Tell) -> Manifest:
    """Make a backup of the journal of *broker* now, and return the JournalBackup once it is made.

    *fields* are those of the spec; without a target among them it is that of the Broker's only
    JournalBackup. Raises CommandError, with the last lines of the Job's log if that failed.
    """
    resource = kubectl.get(BROKERS, broker)
    given = dict(fields) if "target" in fields else {**_known_target(kubectl, broker), **fields}
    spec = {"broker": broker, **given}
    _check_spec(JournalBackupSpec, spec)
    name = new_name(broker, NAME_CHARACTERS_MAX)
    kubectl.run("create", "--filename=-", text=_text("JournalBackup", name, spec, resource))
    return _follow(kubectl, BACKUPS, name, tell)


def told(backup: Manifest) -> str:
    """Return where a backup that was made is, and what is in it as far as that is known."""
    status = backup["status"]
    if "snapshot" in status:
        return f"VolumeSnapshot {status['snapshot']}"
    result = status.get("result", {})
    return f"{result.get('place')}, {result.get('pending')} pending"


def restore(kubectl: Kubectl, backup: str, name: str, until: str | None, tell: Tell) -> Manifest:
    """Make the Broker *name*, which begins with *backup*, and return it once it serves.

    It has the spec of the Broker that was backed up, but for what only one can have (`_movable`).
    Raises CommandError.
    """
    if len(name) > BROKER_CHARACTERS_MAX:
        raise misused(f"{name}: longer than {BROKER_CHARACTERS_MAX} characters")
    made = kubectl.get(BACKUPS, backup)
    original = kubectl.find(BROKERS, made["spec"]["broker"])
    bootstrap = {"backup": backup, **({} if until is None else {"until": until})}
    if original is None:
        reason = f"Broker {made['spec']['broker']} is gone, whose spec the new one would have"
        way_out = f"apply a Broker with spec.bootstrap {json.dumps(bootstrap)}"
        raise CommandError(f"{reason}; {way_out}")
    _check_spec(Bootstrap, bootstrap)
    spec = {**_movable(original["spec"]), "bootstrap": bootstrap}
    kubectl.run("create", "--filename=-", text=_text("Broker", name, spec, original))
    return _follow(kubectl, BROKERS, name, tell)


def _known_target(kubectl: Kubectl, broker: str) -> dict[str, Any]:
    """Return where the JournalBackups of a Broker keep its backups, and how the first one does.

    Those that this command made are among them.
    """
    found = [each for each in kubectl.list(BACKUPS) if each["spec"]["broker"] == broker]
    found.sort(key=lambda each: str(each["metadata"]["creationTimestamp"]))
    targets = {json.dumps(_target_of(each), sort_keys=True) for each in found}
    if len(targets) != 1:
        count = "no JournalBackup" if not targets else "JournalBackups with several targets"
        raise misused(f"{broker} has {count}: say --claim NAME or --url URL")
    said = found[0]["spec"]
    kept = {field: said[field] for field in ("credentials", "image", "keep") if field in said}
    return {"target": _target_of(found[0]), **kept}


def _target_of(backup: Manifest) -> dict[str, Any]:
    """Return the target of a JournalBackup with the directory that it has by its name."""
    target: dict[str, Any] = backup["spec"]["target"]
    claim = target.get("claim")
    if claim is None:
        return target
    path = str(claim.get("path") or backup["metadata"]["name"]).strip("/")
    return {"claim": {**claim, "path": path}}


def _movable(spec: Manifest) -> Manifest:
    """Return a Broker's spec without what no two can have, and without what keeps it from serving.

    Names and addresses of the outer world stay the first one's: its clients would come here.
    """
    kept = {name: value for name, value in spec.items() if name not in ("hibernated", "paused")}
    storage = {**spec.get("storage", {})}
    storage.pop("existingClaim", None)
    listeners = [_movable_listener(listener) for listener in spec.get("listeners", ())]
    return {**kept, "storage": storage, **({"listeners": listeners} if listeners else {})}


def _movable_listener(listener: Manifest) -> Manifest:
    service = {**listener.get("service", {})}
    service.pop("nodePort", None)
    if "annotations" in service:
        notes = service["annotations"].items()
        service["annotations"] = {name: value for name, value in notes if name not in DNS_NAMES}
    kept = {name: value for name, value in listener.items() if name not in OUTER_ADDRESSES}
    return {**kept, "service": service}


def _check_spec(model: type[ApiModel], spec: Mapping[str, Any]) -> None:
    """Raise CommandError for what the API server would refuse."""
    try:
        model.model_validate(spec)
    except ValidationError as error:
        found = (complaint(model, each) for each in error.errors())
        raise misused("; ".join(f"{path}: {reason}" for path, reason in found)) from error


def _text(kind: str, name: str, spec: Mapping[str, Any], like: Manifest) -> str:
    """Return a resource for the operator that looks after the Broker *like*."""
    metadata = {"name": name, "labels": labels_like(like)}
    return json.dumps({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec})


def _follow(kubectl: Kubectl, kind: str, name: str, tell: Tell) -> Manifest:
    """Wait until a resource is ready, and return it. Raises CommandError for one that stalls."""
    began = time.monotonic()
    while True:
        found = kubectl.find(kind, name)
        if found is None:
            raise CommandError(f"{name} was deleted")
        if condition(found, "Ready")["status"] == "True":
            return found
        stalled = condition(found, "Stalled")
        if stalled["status"] == "True":
            raise CommandError(f"{name}: {stalled['message']}")
        unseen = not found.get("status") and time.monotonic() - began > UNSEEN_SECONDS
        reconciling = condition(found, "Reconciling")["message"] or "starting"
        tell("waiting for the operator: does it run?" if unseen else reconciling)
        time.sleep(LOOK_SECONDS)
