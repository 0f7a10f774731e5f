"""Windows: how many unacknowledged messages a consumer may hold."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockkeeper.broker.subscriptions.consumer import Consumer

# What an ActiveMQ client asks for when nobody chose; only then does a policy choose for it.
CLIENT_QUEUE_PREFETCH = 1000
CLIENT_BROWSER_PREFETCH = 500
WINDOW_MAX = 32_767
"""What a Java client may ask for: one frame can acknowledge a whole window."""
CLIENT_TOPIC_PREFETCH = 32767
CLIENT_DURABLE_PREFETCH = 100
CLIENT_OPTIMIZED_DURABLE_PREFETCH = 1000


@dataclass(frozen=True, slots=True)
class PrefetchPolicy:
    """The windows of consumers that kept their client's default."""

    queue: int = CLIENT_QUEUE_PREFETCH
    queue_browser: int = CLIENT_BROWSER_PREFETCH
    topic: int = CLIENT_TOPIC_PREFETCH
    durable_topic: int = CLIENT_DURABLE_PREFETCH
    optimized_durable_topic: int = CLIENT_OPTIMIZED_DURABLE_PREFETCH

    def window(self, consumer: "Consumer", is_queue: bool) -> int:
        """Return the window of *consumer*: its own choice, or else the policy's."""
        if consumer.browser:
            default, chosen = CLIENT_BROWSER_PREFETCH, self.queue_browser
        elif is_queue:
            default, chosen = CLIENT_QUEUE_PREFETCH, self.queue
        elif consumer.subscription_name is not None and consumer.request.optimized:
            default, chosen = CLIENT_OPTIMIZED_DURABLE_PREFETCH, self.optimized_durable_topic
        elif consumer.subscription_name is not None:
            default, chosen = CLIENT_DURABLE_PREFETCH, self.durable_topic
        else:
            default, chosen = CLIENT_TOPIC_PREFETCH, self.topic
        window = chosen if consumer.prefetch == default else consumer.prefetch
        return min(window, WINDOW_MAX)
