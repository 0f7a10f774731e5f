"""Destination of an analysis' results."""

from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from lockkeeper_api.analysis.source import DirectoryPath, Url
from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Size, sizes
from lockkeeper_api.raw import ObjectName
from lockkeeper_api.rules import rules

ONE_OUTPUT = "expected at most one of claim, path, serve"
_ONE_OUTPUT_RULE = "[has(self.claim), has(self.path), has(self.serve)].filter(x, x).size() <= 1"


class ClaimOutput(ApiModel):
    """An existing PersistentVolumeClaim."""

    name: ObjectName
    """Name of the claim; it is not the one that is read."""
    path: DirectoryPath = ""
    """Directory within the volume; each run has one of its own in it."""


class Serve(ApiModel):
    """A page that browsers open: a claim, a pod that serves it, and a Service."""

    port: int = Field(default=8080, ge=1024, le=65535)
    """Port of the Service."""
    size: Annotated[Size, sizes("64Mi", "1Ti")] = 1 << 30
    """Size of the claim with the results."""
    class_name: ObjectName | None = None
    """StorageClass of the claim; absent: the cluster's default."""


class Output(ApiModel):
    """Place for results; without any of these fields they are served."""

    model_config = ConfigDict(json_schema_extra=rules((_ONE_OUTPUT_RULE, ONE_OUTPUT)))

    claim: ClaimOutput | None = None
    """An existing claim."""
    path: Url | None = None
    """An object store or the like, such as `s3://bucket/reports`."""
    serve: Serve | None = None
    """A page in the cluster."""

    @model_validator(mode="after")
    def _is_one(self) -> "Output":
        given = (self.claim, self.path, self.serve)
        if sum(each is not None for each in given) > 1:
            raise ValueError(ONE_OUTPUT)
        return self

    @property
    def served(self) -> Serve | None:
        """Settings of the served page; None for results in another place."""
        if self.claim is not None or self.path is not None:
            return None
        return self.serve or Serve()
