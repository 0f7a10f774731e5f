"""Advisories of a destination that are off by default (ActiveMQ's policyEntry)."""

from lockkeeper_api.meta import ApiModel


class Advisories(ApiModel):
    """Advisories that cost work for each message; all others are there if somebody listens."""

    send_advisory_if_no_consumers: bool = False
    """Copies of non-persistent messages without a consumer, on NoConsumer."""
    advisory_for_delivery: bool = False
    """Messages that have reached the destination, on MessageDelivered."""
    advisory_for_consumed: bool = False
    """Acknowledged messages of queues and durable subscriptions, on MessageConsumed."""
    advisory_for_discarding_messages: bool = False
    """Messages that pendingMessageLimit has discarded, on MessageDiscarded."""
    advisory_for_slow_consumers: bool = False
    """Consumers whose window is full while messages wait, on SlowConsumer."""
    advisory_for_fast_producers: bool = False
    """Producers that have to wait for memory, on FastProducer."""
    advisory_when_full: bool = False
    """Messages that have to wait for memory, on FULL."""
    include_body_for_advisory: bool = False
    """Advisories about messages have their bodies, not only headers and properties."""
