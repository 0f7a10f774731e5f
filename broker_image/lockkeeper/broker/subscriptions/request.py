"""Request of a client that wants to consume."""

from typing import Any, NamedTuple

from lockkeeper.broker.subscriptions.network import NetworkRoute
from lockkeeper.message.destination import Destination


class ConsumeRequest(NamedTuple):
    """A consumer to be; `subscription_name` makes it durable (topics only).

    `tag` is what the protocol keeps with the consumer. The rest is what ActiveMQ's ConsumerInfo
    says: `exclusive` wants a queue for itself, those of higher `priority` (-128 to 127) come
    first, a `retroactive` one wants what a topic's recovery policy has kept, `pending_limit` is
    how many messages a topic may keep for it (0 leaves that to the policy), and an `optimized`
    one acknowledges many messages at a time. `network` is the way of a bridge's consumer.
    """

    identifier: Any
    destination: Destination
    prefetch: int
    selector: str | None = None
    no_local: bool = False
    browser: bool = False
    subscription_name: str | None = None
    tag: Any = None
    exclusive: bool = False
    priority: int = 0
    retroactive: bool = False
    pending_limit: int = 0
    optimized: bool = False
    network: NetworkRoute | None = None
