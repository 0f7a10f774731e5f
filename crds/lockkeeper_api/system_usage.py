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
    """How much; 70 % of the process's allowance where that is less."""
    percent_of_allowance: Percent | None = None
    """Instead: a share of the memory that the process may have (as percentOfJvmHeap is)."""


class StoreUsage(ApiModel):
    """The journal's files."""

    limit: Annotated[Size, sizes("1Mi", "1Pi")] = 100 * GIBIBYTE
    """How much, but two files at least; a full disk counts as used up, too."""
    percent_limit: Percent | None = None
    """Instead: a share of the disk (ActiveMQ's percentLimit)."""


class TempUsage(ApiModel):
    """Temporary files, with what is not persistent and does not fit into the memory."""

    limit: Annotated[Size, sizes("0", "1Pi")] = 50 * GIBIBYTE
    """How much; a full disk counts as used up, too."""
    percent_limit: Percent | None = None
    """Instead: a share of the disk (ActiveMQ's percentLimit)."""


class SystemUsage(ApiModel):
    """What the broker may use in all, and what becomes of sends that find it used up.

    As a rule they wait. Acknowledgements and the outcomes of transactions never do.
    """

    memory_usage: MemoryUsage = MemoryUsage()
    """Messages in memory; non-persistent messages wait when it is used up."""
    store_usage: StoreUsage = StoreUsage()
    """The journal's files; persistent messages wait when it is used up."""
    temp_usage: TempUsage = TempUsage()
    """Temporary files, with non-persistent messages beyond the memory's high-water mark."""
    send_fail_if_no_space: bool = False
    """Such a send fails at once."""
    send_fail_if_no_space_after_timeout: Annotated[Duration, durations("0s", "24h")] = timedelta(0)
    """Such a send fails when it has waited so long; 0s never."""
