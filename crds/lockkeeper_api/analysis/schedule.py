"""Schedule of an analysis that runs again and again."""

from typing import Literal

from pydantic import Field

from lockkeeper_api.cluster.operation import CRON_PATTERN
from lockkeeper_api.meta import ApiModel
from lockkeeper_api.zones import TimeZone


class Schedule(ApiModel):
    """Regular runs."""

    cron: str = Field(max_length=128, pattern=CRON_PATTERN)
    """Schedule in cron's notation, such as `0 3 * * *`."""
    time_zone: TimeZone = "UTC"
    """Time zone of the schedule, such as Europe/Berlin."""
    concurrency_policy: Literal["Forbid", "Replace"] = "Forbid"
    """Treatment of a run that is due while another goes on. Forbid leaves it out, Replace ends the
    other one. Two at once would make the same reports twice."""
    successful_history_limit: int = Field(default=3, ge=0, le=50)
    """Number of successful runs to keep, with their pods' logs."""
    failed_history_limit: int = Field(default=1, ge=0, le=50)
    """Number of failed runs to keep."""
