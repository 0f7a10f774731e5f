"""Flow: what becomes of messages, and of who sends them, when there is no room."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FlowPolicy:
    """ActiveMQ's attributes of a policyEntry, with its defaults; times are in ms.

    Without `producer_flow_control` the destination's own memory limit stops no producer, and
    the broker's only when nothing more can be spooled. Bodies leave the memory beyond
    `cursor_memory_high_water_mark` percent of the limit, those that are not persistent only
    with `spool_non_persistent`. None leaves the choice to the broker's system usage.
    """

    producer_flow_control: bool = True
    cursor_memory_high_water_mark: int = 70
    spool_non_persistent: bool = True
    send_fail_if_no_space: bool | None = None
    send_fail_if_no_space_after_timeout: int | None = None
    blocked_producer_warning_interval: int = 30_000
