"""Messages that a topic keeps for consumers to come (ActiveMQ's subscriptionRecoveryPolicy)."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, Size, durations, sizes
from lockkeeper_api.units import KIBIBYTE

RecoveryStrategy = Literal["NoSubscription", "FixedCount", "FixedSized", "Timed", "LastImage"]


class SubscriptionRecovery(ApiModel):
    """Messages that a topic keeps in memory for retroactive consumers.

    When memory is short, only the last message is kept.
    """

    strategy: RecoveryStrategy = "NoSubscription"
    """NoSubscription: none. LastImage: the last message. FixedCount, FixedSized, Timed: the
    messages that the fields below allow (ActiveMQ's ...SubscriptionRecoveryPolicy)."""
    maximum_count: int = Field(default=100, ge=1, le=1_000_000)
    """FixedCount: number of messages (ActiveMQ's maximumSize)."""
    maximum_size: Annotated[Size, sizes("1Ki", "1Gi")] = 64 * KIBIBYTE
    """FixedSized: size of all message bodies together."""
    recover_duration: Annotated[Duration, durations("1s", "24h")] = timedelta(minutes=1)
    """Timed: time that a message is kept."""
