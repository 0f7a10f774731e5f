"""Mirrored queues: what is sent to a queue is published, too (ActiveMQ's mirroredQueue)."""

from dataclasses import dataclass

from lockkeeper.broker.routing.rule import Forward, Hop, Label, OpenRoute, Region
from lockkeeper.message.destination import Destination, topic
from lockkeeper.message.message import Message


@dataclass(frozen=True, slots=True)
class MirroredQueues:
    """ActiveMQ's attributes of a mirroredQueue, with its defaults.

    The mirror of a queue is the topic with its name between `prefix` and `postfix`. Without
    `copy_message` its messages say that they are of the queue. Temporary queues have mirrors
    with `use_temp_mirrored_queues`.
    """

    prefix: str = "VirtualTopic.Mirror."
    postfix: str = ""
    copy_message: bool = True
    use_temp_mirrored_queues: bool = True


class MirrorRule:
    """Copies what is sent to a queue to its mirror."""

    def __init__(self, settings: MirroredQueues, open_route: OpenRoute) -> None:
        self._settings = settings
        self._open_route = open_route

    def applies_to(self, destination: Destination) -> bool:
        """See `Rule.applies_to`."""
        wanted = self._settings.use_temp_mirrored_queues or not destination.is_temporary
        return destination.is_queue and wanted

    def mirror_of(self, queue: Destination) -> Destination:
        """Return the topic that shows what is sent to *queue*."""
        return topic(f"{self._settings.prefix}{queue.name}{self._settings.postfix}")

    def forward(self, region: Region, message: Message, label: Label) -> Forward:
        """See `Rule.forward`."""
        mirror = self.mirror_of(region.destination)
        if self._settings.copy_message:
            label = Label(mirror, label.original)
        return Forward((Hop(self._open_route(mirror), label),), stays=True)
