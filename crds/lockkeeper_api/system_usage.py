"""Limits of a broker in all: memory, the journal, temporary files."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Duration, Size, durations, sizes

GIBIBYTE = 1 << 30
Percent = Annotated[int, Field(ge=1, le=100)]


class MemoryUsage(ApiModel):
    """Messages in memory, all destinations together; each counts 1 KiB beside its bytes."""

    limit: Annotated[Size, sizes("1Mi", "1Pi")] = GIBIBYTE
    """Limit of the memory; 70 % of the process's allowance where that is less."""
    percent_of_allowance: Percent | None = None
    """Limit as a share of the process's allowance instead (as ActiveMQ's percentOfJvmHeap)."""


class StoreUsage(ApiModel):
    """The journal's files."""

    limit: Annotated[Size, sizes("1Mi", "1Pi")] = 100 * GIBIBYTE
    """Limit of the journal, at least two files; a full disk counts as used up, too."""
    percent_limit: Percent | None = None
    """Limit as a share of the disk instead (ActiveMQ's percentLimit)."""


class TempUsage(ApiModel):
    """Temporary files with non-persistent messages that do not fit into the memory."""

    limit: Annotated[Size, sizes("0", "1Pi")] = 50 * GIBIBYTE
    """Limit of the files; a full disk counts as used up, too."""
    percent_limit: Percent | None = None
    """Limit as a share of the disk instead (ActiveMQ's percentLimit)."""


class SystemUsage(ApiModel):
    """Limits of the whole broker, and the treatment of sends that find them used up.

    As a rule they wait. Acknowledgements and the outcomes of transactions never do.
    """

    memory_usage: MemoryUsage = MemoryUsage()
    """Messages in memory; non-persistent messages wait when it is used up."""
    store_usage: StoreUsage = StoreUsage()
    """The journal's files; persistent messages wait when it is used up."""
    temp_usage: TempUsage = TempUsage()
    """Temporary files, with non-persistent messages beyond the memory's high-water mark."""
    send_fail_if_no_space: bool = False
    """Fail a send at once when a limit is used up; false: it waits."""
    send_fail_if_no_space_after_timeout: Annotated[Duration, durations("0s", "24h")] = timedelta(0)
    """Time after which a waiting send fails; 0s: never."""
