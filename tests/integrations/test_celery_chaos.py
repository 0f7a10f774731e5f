"""Tasks outlive random kills of workers and of the broker, and no worker falls silent."""

import os
import random
import time
from collections import Counter
from pathlib import Path

import brokers
import pytest
from workers import Application, kombu_url, wait_until

TASKS = int(os.environ.get("LOCKKEEPER_CELERY_TASKS", "200"))
SENDER = """
import time
from kombu.exceptions import OperationalError

def send(number):
    while True:
        try:
            return tasks.{task}.delay(number, 0.02)
        except OperationalError:
            time.sleep(0.5)

for number in range({tasks}):
    send(number)
"""
QUIET_SECONDS_MAX = 300.0


def kill_at_random(
    application: Application, broker: brokers.RunningBroker, chance: random.Random, task: str
) -> Counter[str]:
    """Kill something at random, again and again, until all tasks have begun.

    Between two kills some tasks begin: nobody falls silent. Return what was killed how often.
    """
    killed: Counter[str] = Counter()
    heard, since, enough = 0, time.monotonic(), chance.randint(1, TASKS // 10)
    while (count := len(set(application.noted("began")))) < TASKS:
        if count > heard:
            heard, since = count, time.monotonic()
        assert time.monotonic() - since < QUIET_SECONDS_MAX, f"stuck at {heard} after {killed}"
        if count < enough:
            time.sleep(0.2)
            continue
        enough = count + chance.randint(1, TASKS // 10)
        victim = chance.choice(["broker", "worker", "child"])
        worker = chance.choice(application.workers)
        if victim == "broker":
            broker.kill()
            time.sleep(chance.uniform(0, 2))
            broker.start()
        elif task == "early":
            # One that is killed loses what it has acknowledged: Celery says so. It is told to end.
            victim = "stopped worker"
            worker.stop()
            worker.start()
        elif victim == "worker":
            worker.kill()
            worker.start()
        else:
            victim = "orphaned children"
            worker.kill_parent()
            worker.start()
        killed[victim] += 1
    return killed


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.crash
@pytest.mark.parametrize("task", ["late", "early"])
@pytest.mark.parametrize("scheme", ["openwire://{}", "failover:(tcp://{})"])
def test_every_task_runs(
    mortal_broker: brokers.RunningBroker, tmp_path: Path, task: str, scheme: str
) -> None:
    seed = int(os.environ.get("LOCKKEEPER_CELERY_SEED", "0"))
    address = kombu_url(mortal_broker).partition("://")[2]
    application = Application(f"lockkeeper+{scheme.format(address)}", tmp_path)
    try:
        for name in ("one", "two"):
            application.worker(name, "-c", "2", waits=False)
        wait_until(lambda: all(" ready." in each.log.read_text() for each in application.workers))
        sender = application.begin(SENDER.format(tasks=TASKS, task=task))
        killed = kill_at_random(application, mortal_broker, random.Random(seed), task)
        wait_until(lambda: set(application.noted("ended")) == set(range(TASKS)), 300)
        assert sender.wait(60) == 0
        again = sum(count - 1 for count in Counter(application.noted("began")).values())
        print(f"{task} over {scheme}: {TASKS} tasks, {again} ran again, killed {dict(killed)}")
    finally:
        application.close()
