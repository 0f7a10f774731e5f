"""What a client asks for when it wants to consume."""

from typing import NamedTuple

from lockkeeper.message.destination import Destination


class ConsumeRequest(NamedTuple):
    """A consumer to be; `subscription_name` makes it durable (topics only).

    `tag` is what the protocol keeps with the consumer.
    """

    identifier: object
    destination: Destination
    prefetch: int
    selector: str | None = None
    no_local: bool = False
    browser: bool = False
    subscription_name: str | None = None
    tag: object = None
