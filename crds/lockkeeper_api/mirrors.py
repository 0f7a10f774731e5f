"""Mirrored queues: what is sent to a queue is published to a topic, too."""

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.wildcards import NamePrefix, QueuePart


class MirroredQueues(ApiModel):
    """Every queue has a mirror: a topic with what is sent to it (ActiveMQ's mirroredQueue)."""

    prefix: NamePrefix = "VirtualTopic.Mirror."
    """What stands before the queue's name in the name of its mirror."""
    postfix: QueuePart = ""
    """What stands behind it."""
    copy_message: bool = True
    """The JMSDestination of what the mirror publishes is the mirror, not the queue."""
    use_temp_mirrored_queues: bool = True
    """Temporary queues have mirrors, too."""
