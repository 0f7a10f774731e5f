"""Virtual topics: queues collect what is sent to a topic, each for consumers of its own."""

from typing import Annotated

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.wildcards import QueuePart, Wildcard


class VirtualTopic(ApiModel):
    """Topics whose messages queues collect, by the queues' names (ActiveMQ's virtualTopic)."""

    name: Wildcard = ">"
    """The topics: a name or a wildcard."""
    prefix: Annotated[QueuePart, Field(min_length=1)] = "Consumer.*."
    """What stands before the topic's name in the name of a queue that collects."""
    postfix: QueuePart = ""
    """What stands behind it."""
    selector_aware: bool = False
    """A queue collects only what a selector of one of its present consumers wants."""
    local: bool = False
    """Queues do not collect what came from another broker."""
    drop_on_resource_limit: bool = False
    """A queue without room misses messages, instead of making their producers wait."""
    set_original_destination: bool = True
    """A copy's JMSDestination is its queue, and the topic its original destination."""
    concurrent_send: bool = False
    """Accepted as ActiveMQ knows it, without effect: all copies are one batch on disk anyway."""
    transacted_send: bool = False
    """Accepted as ActiveMQ knows it, without effect: all copies are one batch on disk anyway."""
