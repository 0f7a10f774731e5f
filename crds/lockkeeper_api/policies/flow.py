"""Flow control: the treatment of messages and producers when there is no room."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations


class Flow(ApiModel):
    """Producer flow control, and the limit from which message bodies leave the memory."""

    producer_flow_control: bool = True
    """Sends wait at memoryLimit; false: only the broker's systemUsage stops them."""
    cursor_memory_high_water_mark: int = Field(default=70, ge=1, le=100)
    """Share of the memory, in percent, beyond which message bodies are kept on disk only."""
    spool_non_persistent: bool = True
    """Write non-persistent messages to temporary files then; false keeps them in memory (ActiveMQ's
    vmQueueCursor)."""
    send_fail_if_no_space: bool | None = None
    """Fail a send at once when there is no room; absent: as systemUsage says."""
    send_fail_if_no_space_after_timeout: Annotated[Duration, durations("0s", "24h")] | None = None
    """Time after which a send that waits for room fails; 0s: never; absent: as systemUsage says."""
    blocked_producer_warning_interval: Annotated[Duration, durations("0s", "24h")] = timedelta(
        seconds=30
    )
    """Interval of the log's warning about sends that wait for room; 0s: no warning."""
