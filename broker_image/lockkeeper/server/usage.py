"""The limits of a resource in bytes: shares of the disk and of the process's memory worked out."""

import logging
import os
from pathlib import Path

from lockkeeper_api import BrokerSpec
from lockkeeper_api.system_usage import StoreUsage, SystemUsage, TempUsage

logger = logging.getLogger(__name__)

ALLOWANCE_PERCENT_MAX = 70
"""What messages may have of the process's memory when the limit is more than that."""

JOURNAL_FILES_MIN = 2
"""A journal of fewer files could never be emptied: its current file always stays."""

_CGROUP = Path("/sys/fs/cgroup")
_CGROUP_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")


def measured(spec: BrokerSpec, directory: Path) -> BrokerSpec:
    """Return *spec* with every limit of its system usage in bytes, for *directory*'s disk."""
    usage = spec.system_usage
    memory = usage.memory_usage.model_copy(update={"limit": _memory_bytes(usage)})
    least = JOURNAL_FILES_MIN * spec.journal.file_bytes
    store_bytes = _disk_bytes(usage.store_usage, directory)
    if store_bytes < least:
        logger.warning(
            "systemUsage.storeUsage of %d bytes is less than two journal files: taken as %d bytes",
            store_bytes,
            least,
        )
    store = usage.store_usage.model_copy(update={"limit": max(store_bytes, least)})
    temp = usage.temp_usage.model_copy(update={"limit": _disk_bytes(usage.temp_usage, directory)})
    update = {"memory_usage": memory, "store_usage": store, "temp_usage": temp}
    return spec.model_copy(update={"system_usage": usage.model_copy(update=update)})


def memory_allowance() -> int:
    """Return the bytes of memory that this process may have: its control group's or all."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = (_limit_in(_CGROUP / name) for name in _CGROUP_LIMITS)
    return min([physical, *(limit for limit in limits if limit is not None)])


def _limit_in(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _memory_bytes(usage: SystemUsage) -> int:
    allowance = memory_allowance()
    percent = usage.memory_usage.percent_of_allowance
    if percent is not None:
        return allowance * percent // 100
    most = allowance * ALLOWANCE_PERCENT_MAX // 100
    if usage.memory_usage.limit > most:
        logger.warning(
            "systemUsage.memoryUsage of %d bytes is more than the process may have: taken as %d",
            usage.memory_usage.limit,
            most,
        )
    return min(usage.memory_usage.limit, most)


def _disk_bytes(usage: StoreUsage | TempUsage, directory: Path) -> int:
    if usage.percent_limit is None:
        return usage.limit
    disk = os.statvfs(directory)
    return disk.f_frsize * disk.f_blocks * usage.percent_limit // 100
