"""Operation of a Broker: updates, disruption, monitoring, analytics."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from lockkeeper_api.cluster.label_selector import check_selector
from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations
from lockkeeper_api.raw import Raw, Strings
from lockkeeper_api.zones import TimeZone

CRON_PATTERN = r"^(@[a-z]+|\S+( \S+){4})$"


class Update(ApiModel):
    """Rollout of a change that needs a restart: standbys first, the master last."""

    strategy: Literal["Unsupervised", "Supervised"] = "Unsupervised"
    """Cluster: approval of the master's restart. Supervised: it waits until the annotation
    lockkeeper.dev/approve has the revision that the condition Upgrading names."""


class DisruptionBudget(ApiModel):
    """Number of pods that may be away at a time while nodes are drained."""

    enabled: bool = True
    """Cluster: write a PodDisruptionBudget; a single replica never has one, since it would block
    drains."""
    max_unavailable: int = Field(default=1, ge=1, le=8)
    """Cluster: number of pods that may be away at a time."""


class Monitoring(ApiModel):
    """Monitor of the Broker, where the Prometheus operator's CRDs are installed."""

    kind: Literal["PodMonitor", "ServiceMonitor", "None"] = "PodMonitor"
    """Cluster: kind of the monitor to write; None: no monitor."""
    interval: Annotated[Duration, durations("1s", "1h")] | None = None
    """Cluster: interval of scrapes; absent: as Prometheus is configured."""
    labels: Strings = Field(default={})
    """Cluster: labels that Prometheus selects it by."""

    @property
    def enabled(self) -> bool:
        """True if a monitor is written."""
        return self.kind != "None"


class AllowedNamespaces(ApiModel):
    """Namespaces whose resources may use the Broker."""

    namespaces: Literal["Same", "All", "Selected"] = "Same"
    """Cluster: the Broker's own namespace, all, or those that `selector` selects."""
    selector: Annotated[Raw, AfterValidator(check_selector)] | None = None
    """Cluster: Selected: a label selector of namespaces; absent: none."""


class AllowedDestinations(AllowedNamespaces):
    """Namespaces whose Destinations may use the Broker."""


class AllowedNetworks(AllowedNamespaces):
    """Namespaces whose BrokerNetworks may include the Broker."""


class Analytics(ApiModel):
    """Regular analyses of the journal."""

    schedule: str | None = Field(default=None, max_length=128, pattern=CRON_PATTERN)
    """Cluster: schedule in cron's notation; absent: never."""
    time_zone: TimeZone = "UTC"
    """Cluster: time zone of the schedule, such as Europe/Berlin."""
    suspended: bool = False
    """Cluster: begin no analysis for now."""
