"""Status of an analysis, written by the operator."""

from typing import Annotated, Literal

from pydantic import Field

from lockkeeper_api.analysis.agreements import RULES_MAX
from lockkeeper_api.meta import ApiModel
from lockkeeper_api.status import Conditions, Count, Generation, Time

MESSAGE_CHARACTERS_MAX = 4096
BROKEN_CHARACTERS_MAX = 1024
Name = Annotated[str, Field(max_length=253)]
Location = Annotated[str, Field(max_length=2048)]
BrokenRule = Annotated[str, Field(max_length=BROKEN_CHARACTERS_MAX)]
RunState = Literal["Submitted", "Running", "Succeeded", "Failed"]


class Progress(ApiModel):
    """Progress of a run, as its driver reports it."""

    step: str = Field(max_length=256)
    """Name of the present step."""
    tasks: Count = 0
    """Number of tasks of Spark's present stages."""
    completed: Count = 0
    """Number of these tasks that are done."""


class AnalysisRun(ApiModel):
    """One run, now or earlier."""

    name: Name
    """Name of its Job or SparkApplication."""
    state: RunState
    """State of the run."""
    started: Time | None = None
    """Time of its start."""
    finished: Time | None = None
    """Time of its end."""
    result: Location | None = None
    """Place of its results."""
    message: str | None = Field(default=None, max_length=MESSAGE_CHARACTERS_MAX)
    """Last lines of the driver, if the run failed."""
    broken_rules: list[BrokenRule] | None = Field(default=None, max_length=RULES_MAX)
    """Rules that were broken, each with its longest breach; absent: no rule, or none told of."""


class Submission(ApiModel):
    """Attempts to make a run that the API server refused."""

    failures: Count
    """Number of refusals since the last attempt that succeeded."""
    last: Time
    """Time of the last refusal."""
    message: str = Field(max_length=MESSAGE_CHARACTERS_MAX)
    """Message of the last refusal."""


class JournalAnalysisStatus(ApiModel):
    """State of the analysis, as the operator found it."""

    observed_generation: Generation | None = None
    """Generation of the resource that this status is about."""
    conditions: Conditions = Field(default=[])
    """Submitted, Running, Succeeded and Failed of the latest run; RulesKept where it has rules."""
    engine: str | None = Field(default=None, max_length=32)
    """Means of execution: sparkApplication, apache, native or local."""
    state: str | None = Field(default=None, max_length=32)
    """The latest run's state, or the reason why there is none."""
    progress: Progress | None = None
    """Progress of the latest run, while it runs."""
    progress_text: str | None = Field(default=None, max_length=300)
    """Progress in a sentence, for people."""
    result: Location | None = None
    """Place of the results of the last run that succeeded."""
    page: Location | None = None
    """Address of the served page, in the cluster."""
    last_successful_time: Time | None = None
    """Time of the last run that succeeded."""
    history: list[AnalysisRun] = Field(default=[], max_length=101)
    """Runs, the latest first."""
    submission: Submission | None = None
    """Attempts that were refused, while there are any."""
