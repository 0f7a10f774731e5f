"""Settings of a listener container; names and meanings are those of Spring's container."""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.core.redelivery import RedeliveryPolicy, RedeliveryPolicyMap
from lockkeeper.client.listener.back_off import BackOff
from lockkeeper.client.messages import DestinationName, destination_of

PREFETCH = 10
"""Few enough for consumers that are added under load to get something to do."""


class CacheLevel(Enum):
    """Things that a consumer keeps from one message to the next."""

    NONE = "none"
    """Nothing: a connection for each receive."""

    CONNECTION = "connection"
    """The connection, which all consumers share."""

    SESSION = "session"
    """Connection and session."""

    CONSUMER = "consumer"
    """Connection, session and consumer."""

    AUTO = "auto"
    """Everything, as `consumer`."""

    def keeps(self, level: "CacheLevel") -> bool:
        """Tell whether what *level* names is kept."""
        return _RANKS[self] >= _RANKS[level]


_RANKS = {
    CacheLevel.NONE: 0,
    CacheLevel.CONNECTION: 1,
    CacheLevel.SESSION: 2,
    CacheLevel.CONSUMER: 3,
    CacheLevel.AUTO: 3,
}


class Concurrency(NamedTuple):
    """Least and greatest number of consumers."""

    minimum: int
    maximum: int

    @classmethod
    def parse(cls, text: "str | int | Concurrency") -> "Concurrency":
        """Return what `"2-10"`, `"4"` (exactly so many) or 4 mean. Raises ValueError."""
        if isinstance(text, Concurrency):
            return text
        least, _, most = str(text).partition("-")
        try:
            found = cls(int(least), int(most or least))
        except ValueError:
            raise ValueError(f"a concurrency is like 4 or 2-10, not {text!r}") from None
        if not 1 <= found.minimum <= found.maximum:
            raise ValueError(f"a concurrency is from 1 on, the least number first, not {text!r}")
        return found


ONE = Concurrency(1, 1)
_WHEN_DONE = (Acknowledge.TRANSACTED, Acknowledge.INDIVIDUAL)


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """Everything that a listener container is told; times in seconds.

    A *task* is a stretch of work of one consumer: up to `messages_per_task` messages, or
    `idle_receives_per_task` receives without one (None: no limit). A consumer ends after
    `idle_task_limit` tasks without a message when there are more than the least number, and more
    than `idle_consumer_limit` have nothing to do; no further one begins while so many are idle.
    `send_to` gets what a function returns when the message has no JMSReplyTo. Raises ValueError.
    """

    destination: DestinationName
    concurrency: Concurrency = ONE
    selector: str | None = None
    subscription_name: str | None = None
    client_id: str | None = None
    acknowledge: Acknowledge = Acknowledge.TRANSACTED
    cache_level: CacheLevel = CacheLevel.AUTO
    prefetch: int | None = None
    priority: int = 0
    exclusive: bool = False
    receive_timeout: float = 1.0
    messages_per_task: int | None = None
    idle_receives_per_task: int | None = 1
    idle_task_limit: int = 1
    idle_consumer_limit: int = 1
    redelivery: RedeliveryPolicy | RedeliveryPolicyMap = field(default_factory=RedeliveryPolicy)
    back_off: BackOff = field(default_factory=BackOff)
    send_to: DestinationName | None = None

    def __post_init__(self) -> None:
        destination = destination_of(self.destination)
        if destination.is_topic and self.concurrency.maximum > 1:
            raise ValueError(
                f"{destination}: every consumer of a topic gets every message, so its "
                "concurrency is 1; a virtual topic's queue can have more"
            )
        if self.acknowledge not in _WHEN_DONE:
            raise ValueError(
                f"acknowledge={self.acknowledge.name}: a container acknowledges what its function "
                f"is done with, which is {' or '.join(mode.name for mode in _WHEN_DONE)}"
            )
        if self.subscription_name is not None and self.client_id is None:
            raise ValueError("a durable subscription needs a client_id")
        if self.receive_timeout <= 0:
            raise ValueError("receive_timeout is more than 0 s: consumers look around in between")
        counts = (
            ("messages_per_task", self.messages_per_task),
            ("idle_receives_per_task", self.idle_receives_per_task),
            ("idle_task_limit", self.idle_task_limit),
            ("idle_consumer_limit", self.idle_consumer_limit),
        )
        for name, count in counts:
            if count is not None and count < 1:
                raise ValueError(f"{name} is from 1 on, not {count}")

    @property
    def window(self) -> int:
        """Number of messages that a broker sends each consumer ahead."""
        if self.prefetch is not None:
            return self.prefetch
        return PREFETCH if self.cache_level.keeps(CacheLevel.CONSUMER) else 1
