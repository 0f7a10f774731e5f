"""Settings of a listener, whatever its protocol."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockkeeper.protocols.cluster import Cluster
    from lockkeeper.protocols.handover import Acceptor


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """Settings of one listener; times in ms, 0 for no inactivity check.

    Clients are told of the `cluster`, so that they know where else to go. Without an `acceptor`,
    other brokers are clients like all others. `address` is where clients find the listener, as
    host:port, and `bound_to` the same with an IP address, for protocols that tell them.
    """

    frame_bytes_max: int = 104_857_600
    inactivity_duration: int = 30_000
    inactivity_initial_delay: int = 10_000
    allow_link_stealing: bool = False
    cluster: "Cluster | None" = field(default=None, compare=False)
    acceptor: "Acceptor | None" = None
    address: str = ""
    bound_to: str = ""
