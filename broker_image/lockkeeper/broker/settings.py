"""What a broker as a whole does differently; the policies of destinations are elsewhere."""

from dataclasses import dataclass, field

from lockkeeper.broker.interceptors.timestamps import TimestampSettings
from lockkeeper.broker.scheduling.scheduler import SchedulerSettings


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """Bytes of message bodies in memory, all destinations together."""

    limit: int = 256 << 20


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The settings of a broker, named as in its resource; None where a feature is not used."""

    memory: MemorySettings = field(default_factory=MemorySettings)
    timestamps: TimestampSettings | None = None
    populate_jmsx_user_id: bool = False
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
