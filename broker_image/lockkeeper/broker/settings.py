"""Settings of a broker as a whole; the policies of destinations are elsewhere."""

from dataclasses import dataclass, field

from lockkeeper.broker.interceptors.timestamps import TimestampSettings
from lockkeeper.broker.routing.composites import CompositeDestination
from lockkeeper.broker.routing.mirrors import MirroredQueues
from lockkeeper.broker.routing.virtual_topics import VirtualTopic
from lockkeeper.broker.streams.settings import StreamsSettings

NEVER = -1


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """Bytes of message bodies in memory, all destinations together."""

    limit: int = 1 << 30


@dataclass(frozen=True, slots=True)
class SystemUsage:
    """ActiveMQ's systemUsage, what the core needs of it; the timeout is in ms, 0 for never.

    A send that finds no room waits: for any time, for the timeout, or not at all.
    """

    memory_usage: MemoryUsage = field(default_factory=MemoryUsage)
    send_fail_if_no_space: bool = False
    send_fail_if_no_space_after_timeout: int = 0


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Largest numbers: of `destinations` in the broker, of all others per connection."""

    destinations: int = 100_000
    consumers: int = 100_000
    producers: int = 100_000
    temporary_destinations: int = 10_000
    transactions: int = 10_000


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """Permission to schedule messages; `time_zone` is that of cron expressions.

    While `max_scheduled_messages` wait, clients may schedule no more.
    """

    enabled: bool = False
    time_zone: str = "UTC"
    max_scheduled_messages: int = 1_000_000


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The settings of a broker, named as in its resource; None where a feature is not used.

    A durable subscription without a consumer for `offline_durable_subscriber_timeout` ms is
    deleted; one looks for such every `offline_durable_subscriber_task_schedule` ms. The period
    is in ms, 0 for never; of destinations, 0 purges any number in a sweep.
    """

    system_usage: SystemUsage = field(default_factory=SystemUsage)
    timestamps: TimestampSettings | None = None
    populate_jmsx_user_id: bool = False
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    virtual_topics: tuple[VirtualTopic, ...] = (VirtualTopic(name="VirtualTopic.>"),)
    composite_destinations: tuple[CompositeDestination, ...] = ()
    mirrored_queues: MirroredQueues | None = None
    schedule_period_for_destination_purge: int = 0
    max_purged_destinations_per_sweep: int = 0
    advisory_support: bool = True
    use_virtual_dest_subs: bool = False
    use_virtual_dest_subs_on_creation: bool = False
    statistics_queries: bool = False
    keep_durable_subs_active: bool = True
    offline_durable_subscriber_timeout: int = NEVER
    offline_durable_subscriber_task_schedule: int = 300_000
    streams: StreamsSettings = field(default_factory=StreamsSettings)
