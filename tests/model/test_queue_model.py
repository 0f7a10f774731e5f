"""One queue with everything that may happen to it, in any order, against what it promises."""

import os
import random

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from machine import QueueMachine

SEED_VARIABLE = "LOCKKEEPER_MODEL_SEED"


def run(examples: int) -> None:
    """Try so many lives of a queue, from a seed that is printed if one of them goes wrong."""
    chosen = int(os.environ.get(SEED_VARIABLE) or random.SystemRandom().randrange(10**6))
    print(f"{SEED_VARIABLE}={chosen}")
    run_state_machine_as_test(
        seed(chosen)(QueueMachine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=50,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(900)
def test_a_queue_keeps_its_promises() -> None:
    run(200)


@pytest.mark.thorough
@pytest.mark.no_cover  # What 200 histories went through is traced above.
@pytest.mark.timeout(900)
def test_a_queue_keeps_its_promises_for_long() -> None:
    run(1000)
