"""Operation of a Broker: updates, disruption, monitoring, analytics."""

from typing import Annotated, Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations
from lockkeeper_api.raw import Raw, Strings
from lockkeeper_api.zones import TimeZone

CRON_PATTERN = r"^(@[a-z]+|\S+( \S+){4})$"


class Update(ApiModel):
    """How a change that needs a restart reaches the pods: standbys first, the master last."""

    strategy: Literal["Unsupervised", "Supervised"] = "Unsupervised"
    """Cluster: Supervised: the master goes on until the annotation lockkeeper.dev/approve has the
    revision that the condition Upgrading names."""


class DisruptionBudget(ApiModel):
    """How many pods may be away at a time when nodes are drained."""

    enabled: bool = True
    """Cluster: write a PodDisruptionBudget; one replica never has one, drains would hang."""
    max_unavailable: int = Field(default=1, ge=1, le=8)
    """Cluster: pods away at a time."""


class Monitoring(ApiModel):
    """What Prometheus is told, where the Prometheus operator's CRDs are installed."""

    kind: Literal["PodMonitor", "ServiceMonitor", "None"] = "PodMonitor"
    """Cluster: which of its resources to write; None: none."""
    interval: Annotated[Duration, durations("1s", "1h")] | None = None
    """Cluster: how often to ask; absent: as Prometheus is configured."""
    labels: Strings = Field(default={})
    """Cluster: labels that Prometheus selects it by."""

    @property
    def enabled(self) -> bool:
        """Whether there is to be a monitor."""
        return self.kind != "None"


class AllowedDestinations(ApiModel):
    """Whose Destinations may live on the Broker."""

    namespaces: Literal["Same", "All", "Selected"] = "Same"
    """Cluster: the Broker's own namespace, all, or those that `selector` selects."""
    selector: Raw | None = None
    """Cluster: Selected: a label selector of namespaces; absent: none."""


class Analytics(ApiModel):
    """Regular analyses of the journal."""

    schedule: str | None = Field(default=None, max_length=128, pattern=CRON_PATTERN)
    """Cluster: when, as cron writes it; absent: never."""
    time_zone: TimeZone = "UTC"
    """Cluster: time zone of the schedule, such as Europe/Berlin."""
    suspended: bool = False
    """Cluster: not at present."""
