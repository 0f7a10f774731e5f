"""Remembers dead letters, so that a message is one of its destination only once."""

from collections import OrderedDict, deque

from lockkeeper.broker.policies.dead_letters import DeadLetterPolicy
from lockkeeper.message.destination import Destination
from lockkeeper.message.rewrite import producer_of


class DeadLetterAudit:
    """The ids of the latest dead letters, by where they died and producer.

    ActiveMQ's audit looks at ids alone, and so loses the second of two copies that die in two
    queues; here each queue may bury its copy.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[Destination, str, bytes], deque[int]] = OrderedDict()

    def is_new(
        self, policy: DeadLetterPolicy, origin: Destination, key: bytes, subscription: str = ""
    ) -> bool:
        """Note the message with this id; tell whether it has not been noted before.

        *subscription* is the key of the durable one that it died of.
        """
        if not policy.enable_audit:
            return True
        producer, sequence = producer_of(key) or (key, 0)
        # Subscriptions with a dead letter queue each do not share what died.
        part = subscription if policy.destination_per_durable_subscriber else ""
        place = (origin, part, producer)
        seen = self._seen.get(place)
        if seen is None:
            seen = self._seen[place] = deque(maxlen=policy.max_audit_depth)
            if len(self._seen) > policy.max_producers_to_audit:
                self._seen.popitem(last=False)
        self._seen.move_to_end(place)
        if sequence in seen:
            return False
        seen.append(sequence)
        return True
