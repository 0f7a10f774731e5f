"""The JournalBackup resource: a Broker's journal copied, once or on a schedule."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from lockkeeper_api.analysis.source import DirectoryPath, Url
from lockkeeper_api.cluster.operation import CRON_PATTERN
from lockkeeper_api.cluster.pods import Image
from lockkeeper_api.meta import ApiModel, ApiVersion, Metadata
from lockkeeper_api.raw import ObjectName
from lockkeeper_api.rules import rules
from lockkeeper_api.status import Conditions, Count, Generation, Time
from lockkeeper_api.zones import TimeZone

NAME_CHARACTERS_MAX = 40
NAME_RULE = "metadata.name: at most 40 characters: a letter, then letters, digits and hyphens"
_NAME_RULE = (
    f"size(self.metadata.name) <= {NAME_CHARACTERS_MAX} && "
    "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')"
)
ONE_TARGET = "expected exactly one of claim, url, snapshot"
_ONE_TARGET_RULE = "[has(self.claim), has(self.url), has(self.snapshot)].exists_one(x, x)"
OWN_IMAGE = "target.url needs image.name: an image with lockkeeper and fsspec's package for the URL"
_OWN_IMAGE_RULE = "!has(self.target.url) || (has(self.image) && has(self.image.name))"

SAME_BROKER = "broker is immutable: what is at the target is of one Broker; make another resource"
_SAME_BROKER_RULE = "self.broker == oldSelf.broker"


class ClaimTarget(ApiModel):
    """A PersistentVolumeClaim for backups; not the Broker's own."""

    name: ObjectName
    """Name of the claim."""
    path: DirectoryPath | None = Field(default=None, min_length=1)
    """Directory within the volume; absent: the name of this resource."""


class SnapshotTarget(ApiModel):
    """A VolumeSnapshot of the journal's volume, which the volume's driver makes."""

    class_name: ObjectName | None = None
    """VolumeSnapshotClass; absent: the cluster's default for the driver."""


class Target(ApiModel):
    """Place for backups; each copy gets a directory that is named by its time."""

    model_config = ConfigDict(json_schema_extra=rules((_ONE_TARGET_RULE, ONE_TARGET)))

    claim: ClaimTarget | None = None
    """A claim."""
    url: Url | None = None
    """A place that fsspec opens, such as `s3://bucket/departures`."""
    snapshot: SnapshotTarget | None = None
    """A snapshot of the volume instead of a copy; needs a driver that makes them."""

    @model_validator(mode="after")
    def _is_one(self) -> "Target":
        given = (self.claim, self.url, self.snapshot)
        if sum(each is not None for each in given) != 1:
            raise ValueError(ONE_TARGET)
        return self


class BackupSchedule(ApiModel):
    """Regular backups; one that is due while another is made is left out."""

    cron: str = Field(max_length=128, pattern=CRON_PATTERN)
    """Schedule in cron's notation, such as `0 3 * * *`."""
    time_zone: TimeZone = "UTC"
    """Time zone of the schedule, such as Europe/Berlin."""


class JournalBackupSpec(ApiModel):
    """Settings of a backup: its Broker, target and schedule. The Broker may run meanwhile."""

    model_config = ConfigDict(
        json_schema_extra=rules((_OWN_IMAGE_RULE, OWN_IMAGE), (_SAME_BROKER_RULE, SAME_BROKER))
    )

    broker: ObjectName
    """The Broker, in the same namespace; immutable, as backups of one alone are at the target."""
    target: Target
    """Place for backups. They stay when this resource is deleted."""
    schedule: BackupSchedule | None = None
    """Regular backups; absent: one, and another one when this spec is changed."""
    suspend: bool = False
    """Begin no new backup; one that has begun goes on."""
    keep: int = Field(default=7, ge=1, le=1000)
    """Number of backups to keep at the target; older ones are deleted after each new one."""
    credentials: ObjectName | None = None
    """A Secret whose keys become environment variables, for object stores: AWS_ACCESS_KEY_ID and
    the like."""
    image: Image = Image()
    """The image that makes the copy; absent: the broker's image of the operator's release."""

    @model_validator(mode="after")
    def _has_image(self) -> "JournalBackupSpec":
        if self.target.url is not None and self.image.name is None:
            raise ValueError(OWN_IMAGE)
        return self


class JournalBackup(ApiModel):
    """A Broker's journal copied while it is written; each copy is opened before it counts."""

    model_config = ConfigDict(json_schema_extra=rules((_NAME_RULE, NAME_RULE)))

    api_version: ApiVersion
    """lockkeeper.dev/v1alpha1."""
    kind: Literal["JournalBackup"]
    """JournalBackup."""
    metadata: Metadata
    """Name, namespace and labels of the backup."""
    spec: JournalBackupSpec
    """Settings of the backup."""


class BackupResult(ApiModel):
    """A backup that was made; see the manifest's reference for the fields."""

    place: str = Field(max_length=2048)
    """Place of the backup: a URL, or the Job's path below /backups in the claim."""
    taken_at: Time
    """Time of the backup: every record that was durable then is in it."""
    mark: str = Field(max_length=64)
    """End of the journal, as FILE:OFFSET."""
    epoch: Count
    """Number of the last master's term."""
    files: Count
    """Number of data files."""
    size: Count
    """Size of all data files in bytes."""
    pending: Count
    """Number of messages that a broker finds in the backup."""


BackupState = Annotated[str, Field(max_length=32)]


class JournalBackupStatus(ApiModel):
    """State of the backups, as the operator found it."""

    observed_generation: Generation | None = None
    """Generation of the resource that this status is about."""
    conditions: Conditions = Field(default=[])
    """Ready: the last backup was made, or the schedule is in place. Reconciling: a backup is made
    or awaited. Stalled: the last one failed, or none can be made."""
    state: BackupState | None = None
    """The latest run's state, or the reason why there is none."""
    run: str | None = Field(default=None, max_length=253)
    """The latest run: a Job or a VolumeSnapshot. A single one that is removed is not made again."""
    job: str | None = Field(default=None, max_length=253)
    """The latest run's Job."""
    snapshot: str | None = Field(default=None, max_length=253)
    """The latest VolumeSnapshot that can be used; while there is none, the one that is made."""
    last_schedule_time: Time | None = None
    """Time for which the schedule asked for the latest VolumeSnapshot."""
    last_successful_time: Time | None = None
    """Time of the last run that succeeded."""
    result: BackupResult | None = None
    """The last successful backup."""
