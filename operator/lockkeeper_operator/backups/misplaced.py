"""Copies whose pods wait where the journal's volume does not come to: they are begun anew.

A Job says where its pods may run by where the volume was when the Job was made. By the time that
a pod is placed the Broker may be hibernated, and there is nobody to be beside; or it was woken,
and has the volume on another node; or whoever had the volume has let it go, and its node has no
room or is gone. A copy that waits keeps all later ones of its schedule waiting.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from lockkeeper_operator.backups.desired.job import job_spec
from lockkeeper_operator.backups.desired.placing import is_beside, only_node
from lockkeeper_operator.backups.observed import ObservedBackup
from lockkeeper_operator.backups.subject import HASH_CHARACTERS, BackupSubject, metadata
from lockkeeper_operator.kubernetes.children.child_steps import stamped
from lockkeeper_operator.kubernetes.children.ownership import controller_of
from lockkeeper_operator.kubernetes.children.steps import Create, Delete, Step
from lockkeeper_operator.kubernetes.children.unwatched import node_of
from lockkeeper_operator.kubernetes.hashes import hash_of
from lockkeeper_operator.kubernetes.manifests import Manifest, key_of
from lockkeeper_operator.kubernetes.pods import PENDING, has_volumes
from lockkeeper_operator.kubernetes.times import parsed

KIND = "Job"
PATIENCE = timedelta(minutes=1)
"""For a pod where the volume is not: whoever has that may be about to let it go, and the node of a
pod that is not placed yet may be about to have room."""


def anew_steps(observed: ObservedBackup, subject: BackupSubject) -> Iterator[Step]:
    """Yield what begins each copy that waits in vain as it would be placed now, then ends that.

    What goes wrong in between loses no copy: one is ended once the other was seen.
    """
    waiting = {
        _controller(pod) for pod in observed.pods if _waits_in_vain(pod, observed.now, subject)
    }
    for job in _jobs(observed, subject):
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        again = _again(job, subject)
        if key_of(again) in observed.children:
            yield Delete(KIND, name, uid)
        # The pod of a Job that was ended may outlive it for a while.
        elif uid in waiting:
            yield Create(stamped(again))


def _jobs(observed: ObservedBackup, subject: BackupSubject) -> Iterator[Manifest]:
    """Yield the Job that is asked for, or those of the schedule, as far as they stay."""
    schedule = observed.children.get(("CronJob", subject.run))
    maker = subject.uid if schedule is None else schedule["metadata"]["uid"]
    for (kind, name), child in observed.children.items():
        wanted = kind == KIND and (schedule is not None or subject.is_run(name))
        if wanted and _controller(child) == maker and "deletionTimestamp" not in child["metadata"]:
            yield child


def _controller(manifest: Manifest) -> str:
    """Return the uid of what controls an object, empty for nothing."""
    return str((controller_of(manifest) or {}).get("uid", ""))


def _waits_in_vain(pod: Manifest, now: datetime, subject: BackupSubject) -> bool:
    if pod.get("status", {}).get("phase") != PENDING:
        return False
    node, needed = node_of(pod), subject.journal.node
    if not node and is_beside(pod, subject.spec.broker):
        # A Broker that is awake comes to have a pod again.
        return subject.sleeps and not needed
    if now - parsed(pod["metadata"]["creationTimestamp"]) < PATIENCE:
        return False
    if node:
        # Of two that wait either may get the volume, which it has before its image is fetched.
        return subject.held and needed not in ("", node) and not has_volumes(pod)
    # The only node that it may have can be full, cordoned or gone, and others would do.
    return only_node(pod) not in ("", needed)


def _again(job: Manifest, subject: BackupSubject) -> Manifest:
    """Return the Job that is made instead of *job*, and has its owner.

    One of a schedule is deleted with the CronJob, which keeps it as long as its own when it has
    ended. While it runs the CronJob begins the next copy all the same: Forbid is about the Jobs in
    its `status.active`, to which its controller adds only what it has made itself.
    """
    former = job["metadata"]
    own = {
        **metadata(subject, owned=False),
        "name": f"{subject.run}-{hash_of(former['uid'])[:HASH_CHARACTERS]}",
        "ownerReferences": [
            {**each, "blockOwnerDeletion": False} for each in former["ownerReferences"]
        ],
    }
    return {"apiVersion": "batch/v1", "kind": KIND, "metadata": own, "spec": job_spec(subject)}
