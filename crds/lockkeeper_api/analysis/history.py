"""History of an analysis: the place of records that the journal may have no more."""

from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from lockkeeper_api.analysis.source import DirectoryPath, Url
from lockkeeper_api.meta import ApiModel
from lockkeeper_api.raw import ObjectName
from lockkeeper_api.rules import rules

ONE_HISTORY = "expected exactly one of claim, path"
_ONE_HISTORY_RULE = "[has(self.claim), has(self.path)].exists_one(x, x)"
KeptName = Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z0-9_.-]+$")]


class ClaimHistory(ApiModel):
    """An existing PersistentVolumeClaim, which the driver writes to and executors read."""

    name: ObjectName
    """Name of the claim; it is not the one with the journal. ReadWriteMany, where executors are on
    other nodes than the driver."""
    path: DirectoryPath = ""
    """Directory of the history within the volume."""


class History(ApiModel):
    """History of records: each run adds what came to the journal, and analyses all of it."""

    model_config = ConfigDict(json_schema_extra=rules((_ONE_HISTORY_RULE, ONE_HISTORY)))

    claim: ClaimHistory | None = None
    """A claim; records are kept as Parquet."""
    path: Url | None = None
    """An object store, such as `s3://bucket/history`; records are kept as a Delta table."""
    broker: KeptName | None = None
    """Name of the records in the history, which may have those of others, too; absent: the source's
    Broker, or else the name of this resource."""

    @model_validator(mode="after")
    def _is_one(self) -> "History":
        if (self.claim is None) == (self.path is None):
            raise ValueError(ONE_HISTORY)
        return self
