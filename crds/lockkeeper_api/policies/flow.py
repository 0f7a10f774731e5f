"""Flow control: the treatment of messages and producers when there is no room."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, durations


class Flow(ApiModel):
    """Producer flow control, and what leaves the memory."""

    producer_flow_control: bool = True
    """Sends wait at memoryLimit; false: only the broker's systemUsage stops them."""
    cursor_memory_high_water_mark: int = Field(default=70, ge=1, le=100)
    """Beyond so much of the memory, in percent, bodies leave it: to the journal, or to files."""
    spool_non_persistent: bool = True
    """To temporary files, that is; false keeps them in memory (ActiveMQ's vmQueueCursor)."""
    send_fail_if_no_space: bool | None = None
    """A send without room fails at once; absent: as systemUsage says."""
    send_fail_if_no_space_after_timeout: Annotated[Duration, durations("0s", "24h")] | None = None
    """A send without room fails after so long, 0s never; absent: as systemUsage says."""
    blocked_producer_warning_interval: Annotated[Duration, durations("0s", "24h")] = timedelta(
        seconds=30
    )
    """How often the log repeats that sends wait; 0s never says it."""
