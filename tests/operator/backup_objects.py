"""JournalBackups as an API server holds them, and what the operator makes of them."""

from dataclasses import replace
from typing import Any

from lockkeeper_api.journal_backup import JournalBackupSpec
from lockkeeper_operator.backups.desired.run import run
from lockkeeper_operator.backups.observed import ObservedBackup
from lockkeeper_operator.backups.status.status import backup_status
from lockkeeper_operator.backups.subject import BackupSubject
from lockkeeper_operator.brokers.journal import Journal
from lockkeeper_operator.kubernetes.children.child_steps import stamped
from lockkeeper_operator.kubernetes.children.steps import Refused, Step
from lockkeeper_operator.kubernetes.manifests import Manifest, key_of

JOURNAL = Journal(claim="orders-journal", path="kahadb", group=10001, one_node=True, node="a")
TO_CLAIM = {"broker": "orders", "target": {"claim": {"name": "backups"}}}
NIGHTLY: dict[str, Any] = {"schedule": {"cron": "0 3 * * *", "timeZone": "Europe/Berlin"}}
T1, T2, T3 = (f"2027-03-01T03:0{minute}:00Z" for minute in (1, 2, 3))


def subject(journal: Journal = JOURNAL, **spec: Any) -> BackupSubject:
    return BackupSubject(
        name="nightly",
        namespace="shop",
        uid="uid-of-nightly",
        created="2027-02-28T12:00:00Z",
        spec=JournalBackupSpec.model_validate({**TO_CLAIM, **spec}),
        journal=journal,
        user=10001,
        default_image="example/lockkeeper:1",
        default_pull_secrets=("registry",),
    )


def there(manifest: Manifest, **more: Any) -> Manifest:
    """What the API server makes of a manifest."""
    found = {**stamped(manifest), **more}
    found["metadata"] = {**found["metadata"], "uid": "uid", "creationTimestamp": T1}
    return found


def observed(*children: Manifest, pods: tuple[Manifest, ...] = (), **status: Any) -> ObservedBackup:
    return ObservedBackup({key_of(each): each for each in children}, pods, status)


def pod_spec(of: BackupSubject) -> Manifest:
    spec = run(of)["spec"]
    spec = spec["jobTemplate"]["spec"] if run(of)["kind"] == "CronJob" else spec
    found: Manifest = spec["template"]["spec"]
    return found


def told(
    found: ObservedBackup, of: BackupSubject, steps: tuple[Step, ...] = (), *refused: Refused
) -> dict[str, Any]:
    status = backup_status(found, of, steps, refused, 2, T3)
    assert status is not None
    again = backup_status(replace(found, status=status), of, steps, refused, 2, "later")
    assert again is None, "an equal status is not written"
    return status


def true(status: dict[str, Any]) -> dict[str, str]:
    conditions = status["conditions"]
    assert [each["type"] for each in conditions] == ["Ready", "Reconciling", "Stalled"]
    return {each["type"]: each["reason"] for each in conditions if each["status"] == "True"}
