"""The Lease that guards against a file lock that a network file system has lost."""

from datetime import timedelta
from typing import Annotated

from pydantic import ConfigDict, model_validator

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations
from lockkeeper_api.rules import rules

SECOND = timedelta(seconds=1)
Seconds = Annotated[Duration, durations("100ms", "10m")]
ORDER = "expected retryPeriod < renewDeadline < duration"
_ORDER_RULE = (
    "duration(self.retryPeriod) < duration(self.renewDeadline) && "
    "duration(self.renewDeadline) < duration(self.duration)"
)


class Lease(ApiModel):
    """A Kubernetes Lease that the master holds besides the file lock."""

    model_config = ConfigDict(json_schema_extra=rules((_ORDER_RULE, ORDER)))

    enabled: bool = True
    """Cluster: hold a Lease besides the file lock."""
    duration: Seconds = 10 * SECOND
    """Cluster: time without a renewal after which another replica may take the Lease."""
    renew_deadline: Seconds = 6 * SECOND
    """Cluster: time without a renewal after which the master stops acknowledging and writing."""
    retry_period: Seconds = SECOND
    """Cluster: time between two attempts to take or renew the Lease."""

    @model_validator(mode="after")
    def _is_in_order(self) -> "Lease":
        if not self.retry_period < self.renew_deadline < self.duration:
            raise ValueError(ORDER)
        return self
