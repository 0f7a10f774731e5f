"""Status of an analysis, written by the operator."""

from typing import Annotated, Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.status import Conditions, Count, Generation, Time

MESSAGE_CHARACTERS_MAX = 4096
Name = Annotated[str, Field(max_length=253)]
Location = Annotated[str, Field(max_length=2048)]
RunState = Literal["Submitted", "Running", "Succeeded", "Failed"]


class Progress(ApiModel):
    """How far a run is, as its driver says."""

    step: str = Field(max_length=256)
    """What goes on."""
    tasks: Count = 0
    """Tasks of Spark's present stages."""
    completed: Count = 0
    """Those that are done."""


class AnalysisRun(ApiModel):
    """One run, now or earlier."""

    name: Name
    """Name of its Job or SparkApplication."""
    state: RunState
    """How it is, or ended."""
    started: Time | None = None
    """When it began."""
    finished: Time | None = None
    """When it ended."""
    result: Location | None = None
    """Where its results are."""
    message: str | None = Field(default=None, max_length=MESSAGE_CHARACTERS_MAX)
    """Of one that failed: the driver's last lines."""


class Submission(ApiModel):
    """Attempts to make a run that the API server refused."""

    failures: Count
    """How many since one went well."""
    last: Time
    """The last one."""
    message: str = Field(max_length=MESSAGE_CHARACTERS_MAX)
    """What was said to it."""


class JournalAnalysisStatus(ApiModel):
    """What the operator found and did."""

    observed_generation: Generation | None = None
    """The generation that all else is about."""
    conditions: Conditions = Field(default=[])
    """Submitted, Running, Succeeded, Failed: of the latest run."""
    engine: str | None = Field(default=None, max_length=32)
    """What carries it out: sparkApplication, apache, native or local."""
    state: str | None = Field(default=None, max_length=32)
    """The latest run's state, or why there is none."""
    progress: Progress | None = None
    """How far the latest run is, while it runs."""
    progress_text: str | None = Field(default=None, max_length=300)
    """The same for people."""
    result: Location | None = None
    """Where the results of the last run that succeeded are."""
    page: Location | None = None
    """Address of the served page, in the cluster."""
    last_successful_time: Time | None = None
    """When a run succeeded last."""
    history: list[AnalysisRun] = Field(default=[], max_length=101)
    """Runs, the latest first."""
    submission: Submission | None = None
    """Attempts that were refused, while there are any."""
