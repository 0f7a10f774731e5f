"""Composite destinations: queues and topics whose messages go to others."""

from pydantic import ConfigDict, Field, model_validator

from lockkeeper_api.meta import ApiModel, DestinationKind
from lockkeeper_api.wildcards import DestinationName, Wildcard

ONE_TARGET = "either a queue or a topic is expected"


class ForwardTo(ApiModel):
    """A queue or a topic that messages are forwarded to."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {"rule": "has(self.queue) != has(self.topic)", "message": ONE_TARGET}
            ]
        }
    )

    queue: DestinationName | None = None
    """Name of the queue."""
    topic: DestinationName | None = None
    """Name of the topic."""
    selector: str | None = Field(default=None, min_length=1, max_length=65_536)
    """Selector of the messages to forward; absent: all (ActiveMQ's filteredDestination)."""

    @model_validator(mode="after")
    def _has_one_target(self) -> "ForwardTo":
        if (self.queue is None) == (self.topic is None):
            raise ValueError(ONE_TARGET)
        return self


class CompositeDestination(ApiModel):
    """A queue or topic whose messages go to others (ActiveMQ's compositeQueue, compositeTopic).

    What is forwarded is always a copy, its original destination this one. All copies of a message
    are one batch on disk.
    """

    name: Wildcard
    """Name of the composite, or a wildcard for every destination that matches it."""
    kind: DestinationKind = "Queue"
    """Queue or Topic."""
    forward_to: list[ForwardTo] = Field(min_length=1, max_length=32)
    """Destinations that its messages are forwarded to."""
    forward_only: bool = True
    """Keep none of the messages in the composite itself."""
    send_when_not_matched: bool = False
    """Keep in the composite itself only the messages that no selector forwards."""
    concurrent_send: bool = False
    """No effect, accepted because ActiveMQ has it: all copies are one batch on disk anyway."""
