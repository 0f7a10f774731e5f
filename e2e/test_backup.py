"""A namespace is deleted and comes back from a backup that was taken while clients were at work."""

import json
import time
from datetime import datetime

import pytest
from brokers import Brokers, broker
from clients import Client, Clients
from conftest import made_namespace
from kube import Manifest, Namespace, wait_until

CLAIM = "backups"
BACKUP_SECONDS_MAX = 120.0
RESTORED_SECONDS_MAX = 360.0
"""A scheduler that misses how a claim is bound looks at the pod again after five minutes."""
QUIET_SECONDS = 6.0
"""Silence after which nothing more comes."""
UNSURE_SECONDS = 1.0
"""By how much a client may note an acknowledgement later than the broker has it durable."""


def backups_claim(**spec: object) -> Manifest:
    """Return the claim that backups go to."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
    }


def backup(broker_name: str) -> Manifest:
    """Return a backup of a Broker into that claim."""
    return {
        "apiVersion": "lockkeeper.dev/v1alpha1",
        "kind": "JournalBackup",
        "metadata": {"name": "before"},
        "spec": {"broker": broker_name, "target": {"claim": {"name": CLAIM}}},
    }


@pytest.mark.timeout(900)
def test_what_was_confirmed_before_a_backup_comes_back_once(
    brokers: Brokers, clients: Clients
) -> None:
    namespace = brokers.namespace
    namespace.apply(broker(brokers.name), backups_claim())
    brokers.wait_settled()
    kept = clients.start("send", "KEPT")
    used, user = clients.start("send", "USED"), clients.start("receive", "USED")
    wait_until("some messages are sent", lambda: len(kept.notes()) > 100)
    namespace.apply(backup(brokers.name))
    wait_until("the backup is made", lambda: result(namespace) is not None, BACKUP_SECONDS_MAX)
    taken = result(namespace)
    assert taken is not None
    for client in (kept, used, user):
        client.end()
    moment = datetime.fromisoformat(taken["takenAt"]).timestamp()
    confirmed = numbers_before(kept, moment)
    consumed = numbers_before(user, moment - UNSURE_SECONDS)
    assert len(confirmed) > 100
    assert consumed
    with_volume_kept(namespace, brokers.name)
    try:
        came, again = received(clients, "KEPT"), received(clients, "USED")
    finally:
        reclaim(namespace, "Delete")
    assert confirmed <= set(came)
    assert len(came) == len(set(came))
    assert not consumed & set(again)
    print(f"{len(confirmed)} confirmed before the backup, all there once; {len(came)} in all")


def result(namespace: Namespace) -> Manifest | None:
    """Return what the backup is, None before it is made."""
    found = namespace.get("journalbackup", "before") or {}
    made: Manifest | None = found.get("status", {}).get("result")
    return made


def numbers_before(client: Client, moment: float) -> set[int]:
    """Return the numbers that a client noted before a time."""
    return {note.number for note in client.notes() if note.at < moment}


def with_volume_kept(namespace: Namespace, name: str) -> None:
    """Delete the namespace, keep the volume with the backups, and begin anew with them."""
    volume = reclaim(namespace, "Retain")
    namespace.kubectl("delete", "namespace", namespace.name, "--timeout=120s")
    anybodys = json.dumps([{"op": "remove", "path": "/spec/claimRef"}])
    namespace.kubectl("patch", "persistentvolume", volume, "--type=json", "-p", anybodys)
    made_namespace(namespace.name, "restricted")
    source = {"claim": {"name": CLAIM, "path": "before"}}
    namespace.apply(backups_claim(volumeName=volume), broker(name, bootstrap=source))
    Brokers(namespace, name).wait_settled(RESTORED_SECONDS_MAX)


def reclaim(namespace: Namespace, policy: str) -> str:
    """Set what becomes of the volume with the backups without its claim; returns its name."""
    claim = namespace.get("persistentvolumeclaim", CLAIM)
    assert claim is not None
    volume = str(claim["spec"]["volumeName"])
    change = {"spec": {"persistentVolumeReclaimPolicy": policy}}
    namespace.patch("persistentvolume", volume, change)
    return volume


def received(clients: Clients, queue: str) -> list[int]:
    """Return the numbers of all messages of a queue, as often as they come."""
    client = clients.start_silent("receive", queue)
    notes, quiet_since = client.notes(), time.monotonic()
    while time.monotonic() - quiet_since < QUIET_SECONDS:
        time.sleep(1.0)
        newer = client.notes()
        if len(newer) != len(notes):
            notes, quiet_since = newer, time.monotonic()
    client.end()
    return [note.number for note in client.notes()]
