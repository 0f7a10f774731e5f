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
    """Text before the topic's name in the name of a collecting queue."""
    postfix: QueuePart = ""
    """Text behind the topic's name."""
    selector_aware: bool = False
    """Collect only messages that a selector of one of the queue's present consumers matches."""
    local: bool = False
    """Do not collect messages that came from another broker."""
    drop_on_resource_limit: bool = False
    """Skip a queue without room, instead of making the producers wait."""
    set_original_destination: bool = True
    """Set a copy's JMSDestination to its queue, and its original destination to the topic."""
    concurrent_send: bool = False
    """No effect, accepted because ActiveMQ has it: all copies are one batch on disk anyway."""
    transacted_send: bool = False
    """No effect, accepted because ActiveMQ has it: all copies are one batch on disk anyway."""
