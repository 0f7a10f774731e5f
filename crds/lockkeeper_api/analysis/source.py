"""Source of an analysis: a broker's journal, a claim, a snapshot, or a path."""

from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Size, sizes
from lockkeeper_api.raw import ObjectName
from lockkeeper_api.rules import rules

ONE_SOURCE = "expected exactly one of broker, claim, snapshot, path"
_ONE_SOURCE_RULE = (
    "[has(self.broker), has(self.claim), has(self.snapshot), has(self.path)].exists_one(x, x)"
)
Url = Annotated[str, Field(max_length=1024, pattern=r"^[a-z][a-z0-9+.-]*://[^\s,]+$")]
"""A path of an object store or another file system, such as `s3://bucket/journals`."""
DirectoryPath = Annotated[
    str, Field(max_length=255, pattern=r"^([A-Za-z0-9_-][A-Za-z0-9._-]*(/|$))*$")
]
"""A directory within a volume, such as `data/kahadb`."""


class ClaimSource(ApiModel):
    """A PersistentVolumeClaim that holds a journal, an ActiveMQ broker's for example."""

    name: ObjectName
    """Name of the claim."""
    path: DirectoryPath = ""
    """Directory of the journal within the volume, such as `data/kahadb`."""
    group: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """Group that may read the journal's files; absent: everybody may, or user 185."""


class SnapshotSource(ApiModel):
    """A VolumeSnapshot, of which a claim is made for the analysis."""

    name: ObjectName
    """Name of the VolumeSnapshot."""
    path: DirectoryPath = ""
    """Directory of the journal within the volume, such as `data/kahadb`."""
    size: Annotated[Size, sizes("64Mi", "1Pi")]
    """Size of the claim, at least that of the snapshot's volume."""
    class_name: ObjectName | None = None
    """StorageClass of the claim; absent: the cluster's default."""
    group: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """Group that the files are given to, as the claim is the analysis's own; absent: 185."""


class Source(ApiModel):
    """Journal to read; the analysis never writes to it and never takes the broker's lock."""

    model_config = ConfigDict(json_schema_extra=rules((_ONE_SOURCE_RULE, ONE_SOURCE)))

    broker: ObjectName | None = None
    """A Broker in the same namespace, running or not, whose journal is read."""
    claim: ClaimSource | None = None
    """A claim."""
    snapshot: SnapshotSource | None = None
    """A snapshot of a volume."""
    path: Url | None = None
    """A copy elsewhere, such as `s3://bucket/journals/departures`."""

    @model_validator(mode="after")
    def _is_one(self) -> "Source":
        given = (self.broker, self.claim, self.snapshot, self.path)
        if sum(each is not None for each in given) != 1:
            raise ValueError(ONE_SOURCE)
        return self
