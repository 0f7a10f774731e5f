"""Schedule of an analysis that runs again and again."""

from typing import Literal

from pydantic import Field

from lockkeeper_api.cluster.operation import CRON_PATTERN
from lockkeeper_api.meta import ApiModel
from lockkeeper_api.zones import TimeZone


class Schedule(ApiModel):
    """Regular runs."""

    cron: str = Field(max_length=128, pattern=CRON_PATTERN)
    """When, as cron writes it, such as `0 3 * * *`."""
    time_zone: TimeZone = "UTC"
    """Time zone of the schedule, such as Europe/Berlin."""
    concurrency_policy: Literal["Forbid", "Replace"] = "Forbid"
    """What happens when the run before is not done: Forbid leaves a run out, Replace ends the old
    one. Two at once would read the same journal for the same answers."""
    successful_history_limit: int = Field(default=3, ge=0, le=50)
    """Runs that succeeded to keep, with their pods' logs."""
    failed_history_limit: int = Field(default=1, ge=0, le=50)
    """Runs that failed to keep."""
