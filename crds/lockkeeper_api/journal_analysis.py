"""The JournalAnalysis resource: a journal becomes a report, once or on a schedule."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from lockkeeper_api.analysis.output import Output
from lockkeeper_api.analysis.schedule import Schedule
from lockkeeper_api.analysis.sizing import Executors, SparkResources
from lockkeeper_api.analysis.source import Source
from lockkeeper_api.cluster.pods import Image, Pods
from lockkeeper_api.meta import ApiModel, ApiVersion, Metadata
from lockkeeper_api.quantities import Duration, durations
from lockkeeper_api.raw import ObjectName, Raw, Strings
from lockkeeper_api.rules import rules

Engine = Literal["auto", "sparkApplication", "apache", "native", "local"]
NAME_CHARACTERS_MAX = 36
NAME_RULE = "metadata.name: at most 36 characters: a letter, then letters, digits and hyphens"
_NAME_RULE = (
    f"size(self.metadata.name) <= {NAME_CHARACTERS_MAX} && "
    "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')"
)
NO_EXECUTORS = "engine local has no executors: leave them out"
_NO_EXECUTORS_RULE = "self.engine != 'local' || !has(self.executors)"
NO_SCHEDULES = "engine apache has no schedules: use auto, sparkApplication, native or local"
_NO_SCHEDULES_RULE = "self.engine != 'apache' || !has(self.schedule)"
OTHER_CLAIM = "output.claim: not the claim that is read"
_OTHER_CLAIM_RULE = (
    "!has(self.source.claim) || !has(self.output) || !has(self.output.claim) || "
    "self.output.claim.name != self.source.claim.name"
)
Moment = Annotated[
    str,
    Field(
        max_length=40,
        pattern=(
            r"^([0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2})?)?"
            r"|([0-9]+(\.[0-9]+)?(h|m|s))+)$"
        ),
    ),
]
"""A time as ISO 8601 has it, or how long before the run begins, such as `24h`."""
Names = Annotated[str, Field(max_length=2048, pattern=r"^\S(.*\S)?$")]
ReportName = Annotated[str, Field(max_length=64, pattern="^[a-z][a-z0-9_]*$")]


class AnalysisPods(Pods):
    """Where pods run, with what, and what else is in them; drivers and executors alike."""

    affinity: Raw | None = None
    """Cluster: beside what the journal's volume demands; absent: nothing."""
    topology_spread_constraints: list[Raw] = Field(default=[], max_length=8)
    """Cluster: spread over zones and the like; each with a labelSelector of its own."""


class JournalAnalysisSpec(ApiModel):
    """What is to be found out, and with what."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (_NO_EXECUTORS_RULE, NO_EXECUTORS),
            (_NO_SCHEDULES_RULE, NO_SCHEDULES),
            (_OTHER_CLAIM_RULE, OTHER_CLAIM),
        )
    )

    source: Source
    """What is read."""
    reports: list[ReportName] = Field(default=[], max_length=64)
    """Names of reports, figures of each as Parquet and JSON, and the page over them; empty: all."""
    since: Moment | None = None
    """From when on: a time, or how long before the run begins, such as `24h`; absent: all."""
    until: Moment | None = None
    """Up to when, in the same way; absent: all."""
    destination: Names | None = None
    """Only these: names or wildcards, commas between; absent: all."""
    schedule: Schedule | None = None
    """Regular runs; absent: one run, and another one when this spec is changed."""
    suspend: bool = False
    """Begin no run; one that runs goes on."""
    engine: Engine = "auto"
    """What carries it out. auto: the Kubeflow Spark operator where its resources are, else
    Apache's (unless there is a schedule), else native. sparkApplication, apache: those. native: a
    Job that is Spark's driver and makes executors. local: a Job alone."""
    resources: SparkResources = SparkResources()
    """What the driver gets."""
    executors: Executors | None = None
    """The processes that read; absent: two with defaults."""
    output: Output = Output()
    """Where results go."""
    credentials: ObjectName | None = None
    """A Secret whose keys become environment variables of driver and executors, for paths in
    object stores: AWS_ACCESS_KEY_ID and the like."""
    spark_conf: Strings = Field(default={})
    """More settings of Spark; those that the operator relies on win."""
    ttl_seconds_after_finished: int | None = Field(default=None, ge=0, le=31_536_000)
    """When to clean up after a run has ended: a single one with this resource and what belongs to
    it, one of a schedule alone; absent: never. Results in a claim of yours or elsewhere stay."""
    backoff_limit: int = Field(default=2, ge=0, le=20)
    """How often a run that failed is tried again, later each time."""
    deadline: Annotated[Duration, durations("10s", "168h")] | None = None
    """Time that a run may take; absent: any."""
    image: Image = Image()
    """The image of driver and executors."""
    pods: AnalysisPods = AnalysisPods()
    """Where pods run, with what, and what else is in them."""

    @model_validator(mode="after")
    def _fits_together(self) -> "JournalAnalysisSpec":
        if self.engine == "local" and self.executors is not None:
            raise ValueError(NO_EXECUTORS)
        if self.engine == "apache" and self.schedule is not None:
            raise ValueError(NO_SCHEDULES)
        read, written = self.source.claim, self.output.claim
        if read is not None and written is not None and read.name == written.name:
            raise ValueError(OTHER_CLAIM)
        return self


class JournalAnalysis(ApiModel):
    """What happened to messages, read from a journal by Spark."""

    model_config = ConfigDict(json_schema_extra=rules((_NAME_RULE, NAME_RULE)))

    api_version: ApiVersion
    """lockkeeper.dev/v1alpha1."""
    kind: Literal["JournalAnalysis"]
    """JournalAnalysis."""
    metadata: Metadata
    """Who the analysis is."""
    spec: JournalAnalysisSpec
    """What is to be found out."""
