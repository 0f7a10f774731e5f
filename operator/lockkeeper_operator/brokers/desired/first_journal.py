"""Source of a Broker's first journal: `spec.bootstrap`, as far as a pod needs to know it."""

from dataclasses import dataclass

from pydantic import ValidationError

from lockkeeper_api.cluster.bootstrap import Bootstrap
from lockkeeper_api.journal_backup import JournalBackupSpec
from lockkeeper_operator.kubernetes.manifests import Manifest

BACKUP_MISSING, CLAIM_EXISTS = "BackupMissing", "ClaimExists"


@dataclass(frozen=True, slots=True)
class FirstJournal:
    """Where it comes from: from *path* within a *claim*, from a *url*, or from a *snapshot*.

    *is_journal* says that a broker's journal is there, not a backup. *image* is empty where the
    Broker's own restores. *problem* and *why* tell why it cannot be had now.
    """

    claim: str = ""
    path: str = ""
    url: str = ""
    is_journal: bool = False
    snapshot: str = ""
    until: str = ""
    credentials: str = ""
    image: str = ""
    pull_secrets: tuple[str, ...] = ()
    problem: str = ""
    why: str = ""


def first_journal(said: Bootstrap, backup: Manifest | None = None) -> FirstJournal:
    """Return the source; *backup* is the JournalBackup that it names, None where there is none."""
    until, image, credentials = said.until or "", said.image or "", said.credentials or ""
    if said.claim is not None:
        path = said.claim.path.strip("/")
        return FirstJournal(claim=said.claim.name, path=path, until=until, image=image)
    if said.journal is not None:
        path = said.journal.path.strip("/")
        return FirstJournal(
            claim=said.journal.name, path=path, is_journal=True, until=until, image=image
        )
    if said.snapshot is not None:
        return FirstJournal(snapshot=said.snapshot)
    if said.url is not None:
        return FirstJournal(url=said.url, until=until, credentials=credentials, image=image)
    return _of_backup(said, backup)


def _of_backup(said: Bootstrap, backup: Manifest | None) -> FirstJournal:
    if backup is None:
        why = f"spec.bootstrap.backup: there is no JournalBackup {said.backup} in this namespace"
        return FirstJournal(problem=BACKUP_MISSING, why=why)
    try:
        spec = JournalBackupSpec.model_validate(backup["spec"])
    except ValidationError as error:
        why = f"JournalBackup {said.backup}: its spec is not valid, {error.errors()[0]['msg']}"
        return FirstJournal(problem=BACKUP_MISSING, why=why)
    if spec.target.snapshot is not None:
        made = backup.get("status", {}).get("snapshot", "")
        why = "" if made else f"JournalBackup {said.backup} has made no snapshot yet"
        return FirstJournal(snapshot=made, problem="" if made else BACKUP_MISSING, why=why)
    claim = spec.target.claim
    return FirstJournal(
        claim="" if claim is None else claim.name,
        path="" if claim is None else (claim.path or backup["metadata"]["name"]).strip("/"),
        url=spec.target.url or "",
        until=said.until or "",
        credentials=said.credentials or spec.credentials or "",
        image=said.image or spec.image.name or "",
        pull_secrets=tuple(spec.image.pull_secrets),
    )
