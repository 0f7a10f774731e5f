"""Counters of listener containers as Prometheus gets them."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from lockkeeper.client.listener import BackOff, ListenerContainer, ListenerSettings
from lockkeeper.client.listener.counters import METRICS, Counters

NAME = 'a "quoted" \\ name'


def samples(text: str) -> dict[str, float]:
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels == {"listener": NAME} and not sample.name.endswith("_created")
    }


def test_the_text_and_the_collector_say_the_same() -> None:
    made = ListenerContainer(lambda message: None, ListenerSettings("ORDERS"), name=NAME)
    for number, metric in enumerate(METRICS, start=1):
        setattr(made.counters, metric.counter, number)
    registry = CollectorRegistry()
    registry.register(made.collector())
    found = samples(made.metrics())
    assert found == samples(generate_latest(registry).decode())
    assert len(found) == len(METRICS) == len(Counters.__slots__)
    assert found["lockkeeper_listener_received_total"] == 1
    assert found["lockkeeper_listener_consumers_peak"] == len(METRICS)


def test_delays_grow_up_to_the_longest_and_end() -> None:
    back_off = BackOff(initial=1, multiplier=2, maximum=5, attempts=5, spread=0.1)
    assert list(back_off.delays(lambda: 0.5)) == [1, 2, 4, 5, 5]
    assert next(back_off.delays(lambda: 0.0)) == pytest.approx(0.9)
    assert next(back_off.delays(lambda: 1.0)) == pytest.approx(1.1)


@pytest.mark.parametrize(
    "options", [{"initial": -1}, {"initial": 2, "maximum": 1}, {"multiplier": 0.5}, {"spread": 1}]
)
def test_a_back_off_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="back-off"):
        BackOff(**options)
