"""The JournalAnalysis resource: a journal becomes a report, once or on a schedule."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from lockkeeper_api.analysis.agreements import RULES_MAX, Rule
from lockkeeper_api.analysis.bodies import Bodies
from lockkeeper_api.analysis.history import History
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
JOURNALS_CLAIM = "history.claim: not the claim that is read"
_JOURNALS_CLAIM_RULE = (
    "!has(self.source.claim) || !has(self.history) || !has(self.history.claim) || "
    "self.history.claim.name != self.source.claim.name"
)
WHOLE_HISTORY = "a history is told whole and without bodies: leave out until and bodies"
_WHOLE_HISTORY_RULE = "!has(self.history) || (!has(self.until) && !has(self.bodies))"
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
"""A time as ISO 8601 has it, or a duration before the run begins, such as `24h`."""
Names = Annotated[str, Field(max_length=2048, pattern=r"^\S(.*\S)?$")]
ReportName = Annotated[str, Field(max_length=64, pattern="^[a-z][a-z0-9_]*$")]


class AnalysisPods(Pods):
    """Placement of drivers and executors, their labels, and more containers in their pods."""

    affinity: Raw | None = None
    """Cluster: affinity of pods, in addition to that of the journal's volume."""
    topology_spread_constraints: list[Raw] = Field(default=[], max_length=8)
    """Cluster: spread of pods over zones and the like; each entry needs a labelSelector."""
    termination_grace_period_seconds: int = Field(default=60, ge=1, le=3600)
    """Cluster: seconds for a clean stop."""


class JournalAnalysisSpec(ApiModel):
    """Settings of an analysis: its source, its reports, and its resources."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (_NO_EXECUTORS_RULE, NO_EXECUTORS),
            (_NO_SCHEDULES_RULE, NO_SCHEDULES),
            (_OTHER_CLAIM_RULE, OTHER_CLAIM),
            (_JOURNALS_CLAIM_RULE, JOURNALS_CLAIM),
            (_WHOLE_HISTORY_RULE, WHOLE_HISTORY),
        )
    )

    source: Source
    """Source of the records."""
    history: History | None = None
    """History of the source's records. A run adds what is new to it, and analyses all that it has.
    So nothing is read twice, and what the broker has removed still counts; absent: none."""
    reports: list[ReportName] = Field(default=[], max_length=64)
    """Names of the reports to make, as Parquet, as JSON and on the page; empty: all."""
    since: Moment | None = None
    """Start of the period: a time, or a duration before the run begins, such as `24h`; absent: the
    journal's start."""
    until: Moment | None = None
    """End of the period, in the same notation; absent: the journal's end."""
    destination: Names | None = None
    """Destinations to analyse: names or wildcards, separated by commas; absent: all."""
    rules: list[Rule] = Field(default=[], max_length=RULES_MAX)
    """Limits that reports are held against, such as `ORDERS.>: p99 > 5s for 10m`. Measures: p50,
    p99, lag, backlog, dead-letter-rate. A broken rule fails no run: see the condition RulesKept."""
    bodies: Bodies | None = None
    """Insight into the bodies of messages, as one more report; absent: none."""
    schedule: Schedule | None = None
    """Regular runs; absent: one run, and another one when this spec is changed."""
    suspend: bool = False
    """Begin no new run; a run that has begun goes on."""
    engine: Engine = "auto"
    """Means of execution. sparkApplication: Kubeflow's Spark operator. apache: Apache's Spark
    operator. native: a Job that is Spark's driver and makes executors. local: one Job without
    executors. auto: the first of these that the cluster and the schedule allow."""
    resources: SparkResources = SparkResources()
    """Processors and memory of the driver."""
    executors: Executors | None = None
    """Executors, which read the journal; absent: two with defaults."""
    output: Output = Output()
    """Place for the results."""
    credentials: ObjectName | None = None
    """A Secret whose keys become environment variables of driver and executors, for paths in
    object stores: AWS_ACCESS_KEY_ID and the like."""
    spark_conf: Strings = Field(default={})
    """Additional settings of Spark; they do not override those that the operator relies on."""
    ttl_seconds_after_finished: int | None = Field(default=None, ge=0, le=31_536_000)
    """Seconds from the end of a run to its deletion; absent: never. A single run is deleted with
    this resource, a scheduled one alone. Results outside the resource's own claim stay."""
    backoff_limit: int = Field(default=2, ge=0, le=20)
    """Number of retries of a failed run; the delay grows with each."""
    deadline: Annotated[Duration, durations("10s", "168h")] | None = None
    """Longest time that a run may take; absent: no limit."""
    image: Image = Image()
    """The image of driver and executors."""
    pods: AnalysisPods = AnalysisPods()
    """Placement of pods, their labels, and more containers in them."""

    @model_validator(mode="after")
    def _fits_together(self) -> "JournalAnalysisSpec":
        if self.engine == "local" and self.executors is not None:
            raise ValueError(NO_EXECUTORS)
        if self.engine == "apache" and self.schedule is not None:
            raise ValueError(NO_SCHEDULES)
        read, written = self.source.claim, self.output.claim
        if read is not None and written is not None and read.name == written.name:
            raise ValueError(OTHER_CLAIM)
        if self.history is not None:
            kept = self.history.claim
            if read is not None and kept is not None and read.name == kept.name:
                raise ValueError(JOURNALS_CLAIM)
            if self.until is not None or self.bodies is not None:
                raise ValueError(WHOLE_HISTORY)
        return self


class JournalAnalysis(ApiModel):
    """Reports about messages, made from a journal by Spark."""

    model_config = ConfigDict(json_schema_extra=rules((_NAME_RULE, NAME_RULE)))

    api_version: ApiVersion
    """lockkeeper.dev/v1alpha1."""
    kind: Literal["JournalAnalysis"]
    """JournalAnalysis."""
    metadata: Metadata
    """Name, namespace and labels of the analysis."""
    spec: JournalAnalysisSpec
    """Settings of the analysis."""
