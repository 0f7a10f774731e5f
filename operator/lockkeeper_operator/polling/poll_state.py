"""Last answers of each Broker's pods."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from lockkeeper_api.pod_names import ROLE_LABEL
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import ADMIN_TLS_ANNOTATION, MASTER
from lockkeeper_operator.polling.admin_endpoint import Address
from lockkeeper_operator.polling.report import Report
from lockkeeper_operator.polling.views import DestinationView

BrokerKey: TypeAlias = tuple[str, str]
"""Namespace and name of a Broker."""
DestinationKey: TypeAlias = tuple[str, str]
"""Kind and name of a destination."""


@dataclass(frozen=True, slots=True)
class AskedPod:
    """A pod that can be asked; *leads* says that its label calls it the master.

    *tls_port* is where it is asked over TLS, 0 for pods of earlier releases.
    """

    uid: str
    host: str
    leads: bool
    tls_port: int = 0


def asked_pod(pod: Manifest) -> AskedPod | None:
    """Return how a pod is asked, None where it has no address yet."""
    metadata, host = pod["metadata"], pod["status"].get("podIP")
    if not host:
        return None
    port = metadata.get("annotations", {}).get(ADMIN_TLS_ANNOTATION, "")
    leads = metadata.get("labels", {}).get(ROLE_LABEL) == MASTER
    return AskedPod(metadata["uid"], host, leads, int(port) if port.isdigit() else 0)


@dataclass(slots=True)
class PollState:
    """One Broker.

    *reports* are of pods, by uid, *misses* how often a pod has not answered in a row. *master* is
    where the master listed its destinations, None while none does, and *silent_since* since when
    that is so; *owned* are the destinations that have an owner, *touched* when the operator
    itself changed one last. Times are the loop's. *port* and *token* open the admin endpoints,
    which are known by *name* over TLS.
    """

    silent_since: float
    port: int = 0
    token: str = field(default="", repr=False)
    name: str = ""
    reports: dict[str, Report] = field(default_factory=dict)
    misses: dict[str, int] = field(default_factory=dict)
    master: Address | None = None
    owned: dict[DestinationKey, DestinationView] = field(default_factory=dict)
    touched: dict[DestinationKey, float] = field(default_factory=dict)
    heard: bool = False
    """Whether pods were asked at all, so that silence means something."""
    unsettled: bool = True
    """Whether something is going on, so that pods are asked more often."""
    pods: tuple[AskedPod, ...] = ()
    """Whom to ask, as of when pods had changed last."""
    stale: bool = True
    """Whether pods have changed since they were asked."""
    asked_at: float = float("-inf")
    listed_at: float = float("-inf")
    listed: bytes = b""
    """Digest of the answer that `owned` was made from."""
    listed_with: str = ""
    """The pod that told its report in that answer, by uid; empty where none did."""
    patience: float = 0.0
    """Seconds between two questions while something is going on."""
    listing_patience: float = 0.0
    """Seconds between two questions for destinations: the longer, the longer nothing changes."""

    def address(self, pod: AskedPod) -> Address:
        """Return where a pod is asked."""
        if pod.tls_port:
            return Address(pod.host, pod.tls_port, self.token, self.name)
        return Address(pod.host, self.port, self.token)


class PollStates:
    """The states of all Brokers."""

    def __init__(self) -> None:
        self._states: dict[BrokerKey, PollState] = {}

    def __len__(self) -> int:
        """Return how many Brokers there are."""
        return len(self._states)

    def __getitem__(self, broker: BrokerKey) -> PollState:
        return self._states[broker]

    def get(self, broker: BrokerKey) -> PollState | None:
        """Return the state of a Broker, None where there is none yet."""
        return self._states.get(broker)

    def open(self, broker: BrokerKey, now: float) -> PollState:
        """Return the state of a Broker, a new one where there is none."""
        if broker not in self._states:
            self._states[broker] = PollState(silent_since=now)
        return self._states[broker]

    def close(self, broker: BrokerKey) -> None:
        """Forget a Broker."""
        self._states.pop(broker, None)


def changed_views(
    before: Mapping[DestinationKey, DestinationView],
    after: Mapping[DestinationKey, DestinationView],
) -> set[DestinationKey]:
    """Return which destinations are not what they were."""
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
