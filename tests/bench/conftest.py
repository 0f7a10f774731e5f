"""Makes the bench's modules importable, and the reports that tests render."""

import sys
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).parents[2]
sys.path[:0] = [str(TOP / "bench"), str(TOP / "tests" / "interop")]


def result(broker: str, scenario: str, number: int, rate: float, **more: Any) -> dict[str, Any]:
    found = {"broker": broker, "scenario": scenario, "round": number, "rate": rate}
    return {**found, "cpu_us": 10.0, "calls": 2.5, "peak_mb": 64.2, **more}


@pytest.fixture
def report() -> dict[str, Any]:
    """A report of two brokers; the first is behind in d, and its p99 in a."""
    latencies = {"p50_us": 100.0, "p99_us": 900.0, "p999_us": 1000.0, "max_us": 1100.0}
    latencies["curve"] = {"50": 100.0, "99": 900.0}  # type: ignore[assignment]
    quicker = {**latencies, "p99_us": 600.0}
    return {
        "time": "2026-01-02 03:04",
        "machine": {"cores": 2, "processor": "made up", "memory_gb": 8.0, "system": "Linux"},
        "versions": {"lockkeeper": "1", "rabbitmq": "3"},
        "seconds": 6.0,
        "warm_up_seconds": 3.0,
        "brokers": ["lockkeeper", "rabbitmq"],
        "scenarios": ["a", "d", "h"],
        "results": [
            result("lockkeeper", "a", 1, 2000, **latencies),
            result("rabbitmq", "a", 1, 1000, cpu_us=40.0, **quicker),
            result("lockkeeper", "a", 2, 2200, **latencies),
            result("rabbitmq", "a", 2, 900, cpu_us=44.0, **quicker),
            result("lockkeeper", "d", 1, 5000),
            result("rabbitmq", "d", 1, 10000, cpu_us=20.0),
            result("lockkeeper", "h", 1, 3000),
        ],
        "failures": [],
        "syncs": [{"broker": "lockkeeper", "scenario": "a", "syncs": 1.0}],
    }
