"""Advisories of a destination that are off by default (ActiveMQ's policyEntry)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AdvisoryPolicy:
    """ActiveMQ's switches, with its names and defaults.

    All other advisories are there whenever somebody listens.
    """

    send_advisory_if_no_consumers: bool = False
    advisory_for_delivery: bool = False
    advisory_for_consumed: bool = False
    advisory_for_discarding_messages: bool = False
    advisory_for_slow_consumers: bool = False
    advisory_for_fast_producers: bool = False
    advisory_when_full: bool = False
    include_body_for_advisory: bool = False

    @property
    def is_about_arrival(self) -> bool:
        """Tell whether every message that arrives is to be looked at."""
        return self.send_advisory_if_no_consumers or self.advisory_for_delivery

    @property
    def is_about_queue(self) -> bool:
        """Tell whether a queue has to look at its messages or consumers."""
        asked = self.advisory_for_consumed or self.advisory_for_slow_consumers
        return asked or self.is_about_arrival
