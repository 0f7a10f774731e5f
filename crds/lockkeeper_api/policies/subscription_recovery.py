"""Messages that a topic keeps for consumers to come (ActiveMQ's subscriptionRecoveryPolicy)."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import KIBIBYTE, Duration, Size, durations, sizes

RecoveryStrategy = Literal["NoSubscription", "FixedCount", "FixedSized", "Timed", "LastImage"]


class SubscriptionRecovery(ApiModel):
    """What a topic keeps for consumers that are retroactive, in memory.

    When memory is short, only the last message is kept.
    """

    strategy: RecoveryStrategy = "NoSubscription"
    """NoSubscription: nothing. LastImage: the last message. FixedCount, FixedSized, Timed: as
    many messages as the fields below say (ActiveMQ's ...SubscriptionRecoveryPolicy)."""
    maximum_count: int = Field(default=100, ge=1, le=1_000_000)
    """FixedCount: messages (its maximumSize)."""
    maximum_size: Annotated[Size, sizes("1Ki", "1Gi")] = 64 * KIBIBYTE
    """FixedSized: bytes of message bodies."""
    recover_duration: Annotated[Duration, durations("1s", "24h")] = timedelta(minutes=1)
    """Timed: how long a message is kept."""
