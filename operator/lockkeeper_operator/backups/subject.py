"""The JournalBackup that children are built for, and what is known besides."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lockkeeper_api.journal_backup import JournalBackupSpec
from lockkeeper_api.meta import API_VERSION
from lockkeeper_operator.backups.names import BACKUP_LABEL
from lockkeeper_operator.brokers.journal import Journal
from lockkeeper_operator.kubernetes.children.ownership import Owner
from lockkeeper_operator.kubernetes.hashes import hash_of
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import (
    COMPONENT_LABEL,
    INSTANCE_LABEL,
    MANAGED_BY_LABEL,
    NAME_LABEL,
    PART_OF_LABEL,
)

HASH_CHARACTERS = 6
NO_NEW_BACKUP = {"suspend", "keep"}
"""Parts of the spec that a backup which was made can do without."""


@dataclass(frozen=True, slots=True)
class BackupSubject:
    """A JournalBackup: who it is, what it is to be, and where the journal is.

    *user* is that of the Broker's pods; *default_image* that of brokers of the operator's release,
    to be had with *default_pull_secrets*; *beside* are the labels of the pod to be beside;
    *held* says that a pod on the journal's node has mounted the volume, and does not wait for it;
    *sleeps* says that the Broker is hibernated: no pod of it comes to have the volume.
    """

    name: str
    namespace: str
    uid: str
    created: str
    spec: JournalBackupSpec
    journal: Journal
    user: int
    default_image: str
    default_pull_secrets: tuple[str, ...] = ()
    beside: Mapping[str, str] = field(default_factory=dict)
    held: bool = False
    sleeps: bool = False

    @property
    def pull_secrets(self) -> tuple[str, ...]:
        """Names of Secrets with which nodes fetch the image."""
        image = self.spec.image
        own = image.pull_secrets or image.name is not None
        return tuple(image.pull_secrets) if own else self.default_pull_secrets

    @property
    def owner(self) -> Owner:
        """The owner of all children."""
        return Owner(self.instance, self.uid)

    @property
    def instance(self) -> str:
        """What children are labelled with; no Broker can have such a name."""
        return f"backup.{self.name}"

    @property
    def run(self) -> str:
        """Name of the Job, or of the CronJob; a spec that asks for something else has another.

        So has the snapshot of another JournalBackup of the same name: it outlives the one before.
        """
        if self.spec.schedule is not None:
            return f"{self.name}-backup"
        said = self.spec.model_dump(
            mode="json", by_alias=True, exclude_defaults=True, exclude=NO_NEW_BACKUP
        )
        asked = said if self.spec.target.snapshot is None else [said, self.uid]
        return f"{self.name}-backup-{hash_of(asked)[:HASH_CHARACTERS]}"

    def is_run(self, name: str) -> bool:
        """Return whether a single backup is made by what has that *name*: once more, maybe."""
        return name == self.run or name.startswith(f"{self.run}-")


def labels(subject: BackupSubject) -> dict[str, str]:
    """Return the labels of every child."""
    return {
        NAME_LABEL: "lockkeeper-backup",
        INSTANCE_LABEL: subject.instance,
        COMPONENT_LABEL: "backup",
        PART_OF_LABEL: "lockkeeper",
        MANAGED_BY_LABEL: "lockkeeper-operator",
        BACKUP_LABEL: subject.name,
    }


def metadata(subject: BackupSubject, *, owned: bool = True) -> Manifest:
    """Return the metadata of the child; one that is not *owned* outlives its JournalBackup."""
    owner = {
        "apiVersion": API_VERSION,
        "kind": "JournalBackup",
        "name": subject.name,
        "uid": subject.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    found: Manifest = {
        "name": subject.run,
        "namespace": subject.namespace,
        "labels": labels(subject),
    }
    if owned:
        found["ownerReferences"] = [owner]
    return found
