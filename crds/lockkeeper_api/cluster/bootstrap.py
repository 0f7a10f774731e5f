"""Bootstrap: the journal that a new Broker begins with."""

from pydantic import ConfigDict, Field, model_validator

from lockkeeper_api.analysis.source import DirectoryPath, Url
from lockkeeper_api.meta import ApiModel
from lockkeeper_api.raw import ObjectName
from lockkeeper_api.rules import rules

ONE_SOURCE = "expected exactly one of backup, claim, url, journal, snapshot"
_ONE_SOURCE_RULE = (
    "[has(self.backup), has(self.claim), has(self.url), has(self.journal), has(self.snapshot)]"
    ".exists_one(x, x)"
)
WHOLE_SNAPSHOT = "until is for backups and journals: a snapshot begins as it is"
_WHOLE_SNAPSHOT_RULE = "!has(self.snapshot) || !has(self.until)"
OWN_IMAGE = "url needs image: one with lockkeeper and fsspec's package for the URL"
_OWN_IMAGE_RULE = "!has(self.url) || has(self.image)"
MOMENT_PATTERN = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$"


class BootstrapClaim(ApiModel):
    """A directory in a PersistentVolumeClaim, which is mounted read-only."""

    name: ObjectName
    """Cluster: name of the claim."""
    path: DirectoryPath = ""
    """Cluster: directory within the volume; absent: its root."""


class Bootstrap(ApiModel):
    """The source of a Broker's first journal. A journal that is there already stays untouched."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (_ONE_SOURCE_RULE, ONE_SOURCE),
            (_OWN_IMAGE_RULE, OWN_IMAGE),
            (_WHOLE_SNAPSHOT_RULE, WHOLE_SNAPSHOT),
        )
    )

    backup: ObjectName | None = None
    """Cluster: a JournalBackup in the same namespace: its snapshot, or the newest at its target."""
    claim: BootstrapClaim | None = None
    """Cluster: a claim with backups, or with one backup."""
    url: Url | None = None
    """Cluster: backups in an object store, such as `s3://bucket/departures`."""
    journal: BootstrapClaim | None = None
    """Cluster: a claim with a KahaDB directory, an ActiveMQ broker's for example, which is copied;
    `storage.existingClaim` uses one in its place."""
    snapshot: ObjectName | None = None
    """Cluster: a VolumeSnapshot of a journal's volume, in the same namespace, of which the Broker's
    own claim is made; `storage.path` is then what it was, and `storage.size` no less."""
    until: str | None = Field(default=None, max_length=40, pattern=MOMENT_PATTERN)
    """Cluster: end the journal at that time, such as 2026-01-31T12:00:00Z; absent: at its end."""
    credentials: ObjectName | None = None
    """Cluster: a Secret whose keys become environment variables, for object stores."""
    image: str | None = Field(default=None, min_length=1, max_length=512, pattern=r"^\S+$")
    """Cluster: the image that restores; absent: the JournalBackup's or the Broker's."""

    @model_validator(mode="after")
    def _is_one(self) -> "Bootstrap":
        given = (self.backup, self.claim, self.url, self.journal, self.snapshot)
        if sum(each is not None for each in given) != 1:
            raise ValueError(ONE_SOURCE)
        if self.url is not None and self.image is None:
            raise ValueError(OWN_IMAGE)
        if self.snapshot is not None and self.until is not None:
            raise ValueError(WHOLE_SNAPSHOT)
        return self
