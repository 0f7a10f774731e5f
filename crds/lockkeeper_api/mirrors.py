"""Mirrored queues: what is sent to a queue is published to a topic, too."""

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.wildcards import NamePrefix, QueuePart


class MirroredQueues(ApiModel):
    """Mirrors: every queue has a topic with the messages sent to it (ActiveMQ's mirroredQueue)."""

    prefix: NamePrefix = "VirtualTopic.Mirror."
    """Text before the queue's name in the name of its mirror."""
    postfix: QueuePart = ""
    """Text behind the queue's name."""
    copy_message: bool = True
    """Set the JMSDestination of published messages to the mirror, not the queue."""
    use_temp_mirrored_queues: bool = True
    """Mirror temporary queues, too."""
