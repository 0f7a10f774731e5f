"""Looks at one JournalBackup: observes, plans, carries out, tells."""

from collections.abc import Callable
from datetime import UTC, datetime

from pydantic import ValidationError

from lockkeeper_api.analysis.source import Source
from lockkeeper_api.complaints import complaint
from lockkeeper_api.journal_backup import JournalBackupSpec
from lockkeeper_operator.backups.desired.placing import labels_beside
from lockkeeper_operator.backups.names import BACKUP_LABEL
from lockkeeper_operator.backups.observed import ObservedBackup
from lockkeeper_operator.backups.plan import backup_plan
from lockkeeper_operator.backups.schedule import next_due
from lockkeeper_operator.backups.snapshots import without_others
from lockkeeper_operator.backups.status.status import backup_status, refused_status
from lockkeeper_operator.backups.subject import BackupSubject
from lockkeeper_operator.brokers.journal import claim_name, journal_of, security_of
from lockkeeper_operator.kubernetes.api.kinds import JOBS, VOLUME_SNAPSHOT
from lockkeeper_operator.kubernetes.caches.store import Store
from lockkeeper_operator.kubernetes.children.steps import Wait
from lockkeeper_operator.kubernetes.children.unwatched import UnwatchedChildren, node_of
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.kubernetes.pods import has_volumes
from lockkeeper_operator.kubernetes.times import written
from lockkeeper_operator.tools import Tools

ACTIVE_SECONDS = 5.0
"""How often a backup is looked at while it is being made, or waited for."""
REST_SECONDS = 60.0


class BackupReconciler:
    """Brings JournalBackups to what they are to be."""

    def __init__(
        self, tools: Tools, store: Store, image: str, pull_secrets: tuple[str, ...]
    ) -> None:
        self._tools, self._store = tools, store
        self._image, self._pull_secrets = image, pull_secrets
        self._objects = UnwatchedChildren(tools.api, BACKUP_LABEL, JOBS, (VOLUME_SNAPSHOT,))
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        """What time it is."""
        self.enabled = True
        """Whether this operator makes backups."""

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Look at a backup; returns the seconds after which to look again at the latest.

        Raises ApiError for what may work later.
        """
        resource = self._store.get(namespace, name)
        if resource is None or "deletionTimestamp" in resource["metadata"]:
            # Its Jobs go with it, by Kubernetes' own doing.
            return None
        generation, previous = resource["metadata"]["generation"], resource.get("status", {})
        now = written(self.now())
        try:
            spec = JournalBackupSpec.model_validate(resource["spec"])
        except ValidationError as error:
            found = (complaint(JournalBackupSpec, each) for each in error.errors())
            problems = "; ".join(f"spec.{path}: {reason}" for path, reason in found)
            refusal = refused_status("InvalidSpec", problems, previous, generation, now)
            await self._tools.write_status(resource, refusal)
            return None
        if not self.enabled:
            problem = "this operator makes no backups: set backups.enabled of the chart"
            await self._tools.write_status(
                resource, refused_status("Disabled", problem, previous, generation, now)
            )
            return None
        subject = await self._subject(resource, spec)
        before = observed = await self._observed(subject, previous)
        steps = backup_plan(before, subject)
        refused, unseen = await self._objects.carry_out(steps, namespace)
        if steps and not unseen:
            observed = await self._observed(subject, previous)
        status = backup_status(observed, subject, steps, refused, generation, now)
        await self._tools.write_status(resource, status)
        is_active = any(not run.ended for run in observed.runs)
        is_waiting = any(isinstance(step, Wait) for step in steps)
        # What ended while it was made is seen with it: what follows from that is still to be done.
        if is_active or is_waiting or unseen or observed.children != before.children:
            return ACTIVE_SECONDS
        return self._rest(spec)

    def _rest(self, spec: JournalBackupSpec) -> float:
        """Return for how many seconds there is nothing to do, as far as is known."""
        if spec.target.snapshot is None or spec.schedule is None or spec.suspend:
            return REST_SECONDS
        now = self.now()
        until_due = (next_due(spec.schedule, now) - now).total_seconds()
        # Not before: the queue looks up to a tenth earlier.
        return min(REST_SECONDS, until_due * 1.12 + 0.1)

    async def _subject(self, resource: Manifest, spec: JournalBackupSpec) -> BackupSubject:
        metadata = resource["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        source = Source(broker=spec.broker)
        broker = self._tools.caches.brokers.get(namespace, spec.broker)
        claim = claim_name(name, source, broker)
        found = await self._objects.claim(namespace, claim)
        holder = await self._objects.user_of_claim(namespace, claim, apart_from=name)
        journal = journal_of(name, source, broker, found, node_of(holder))
        return BackupSubject(
            name=name,
            namespace=namespace,
            uid=metadata["uid"],
            created=metadata["creationTimestamp"],
            spec=spec,
            journal=journal,
            user=security_of(broker).run_as_user,
            default_image=self._image,
            default_pull_secrets=self._pull_secrets,
            beside=labels_beside(holder, spec.broker) if journal.node else {},
            held=holder is not None and has_volumes(holder),
            sleeps=bool((broker or {}).get("spec", {}).get("hibernated")),
        )

    async def _observed(self, subject: BackupSubject, status: Manifest) -> ObservedBackup:
        namespace, name = subject.namespace, subject.name
        wants_snapshot = subject.spec.target.snapshot is not None
        apis = await self._objects.apis() if wants_snapshot else frozenset()
        found = await self._objects.children(namespace, name, apis)
        children = without_others(found, subject.journal.claim)
        pods = await self._objects.pods(namespace, name)
        return ObservedBackup(children, tuple(pods), status, bool(apis), self.now())
