"""The loads of streams, with RocketMQ's client, at ours and at a real RocketMQ."""

from pathlib import Path

import others
import pytest
from others import java_project
from run import Client, result_of, run_load, started_for
from scenarios import SCENARIOS, STREAM_SCENARIOS, unfit

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.parametrize(
    "kind", ["lockkeeper", pytest.param("rocketmq", marks=pytest.mark.thorough)]
)
def test_brokers_carry_streams(kind: str, tmp_path: Path) -> None:
    reason = java_project.missing()
    if reason:
        pytest.skip(reason)
    class_path = java_project.build(others.HERE / "java")
    client = Client(["java", "-cp", class_path, "dev.lockkeeper.bench.Load"], 1, seconds=1)
    broker = started_for(list(STREAM_SCENARIOS), kind, tmp_path / "home", None)
    try:
        found = {
            scenario: result_of(run_load(broker, client, scenario), kind, scenario, 1)
            for scenario in STREAM_SCENARIOS
        }
    finally:
        broker.running.stop()
    assert {scenario for scenario, result in found.items() if result.rate > 0} == {*"tuvw"}
    assert all(result.p50_us is not None for result in found.values())


def test_streams_are_for_those_who_speak_rocketmq() -> None:
    carried = {
        kind: "".join(each for each in SCENARIOS if unfit(kind, each) is None)
        for kind in ("lockkeeper", "lockkeeper-compiled", "activemq", "artemis", "rocketmq")
    }
    assert carried["rocketmq"] == STREAM_SCENARIOS
    assert carried["lockkeeper"] == carried["lockkeeper-compiled"] == "".join(SCENARIOS)
    assert carried["activemq"] == carried["artemis"] == "abcdefghijklmnopqrs"
