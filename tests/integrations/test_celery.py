"""Celery, unchanged, on Lockkeeper and on ActiveMQ: real workers, real commands."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import brokers
import pytest
from workers import Application, kombu_url, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.patient, pytest.mark.timeout(1200)]


@pytest.fixture
def application(broker: brokers.RunningBroker, tmp_path: Path) -> Iterator[Application]:
    made = Application(kombu_url(broker), tmp_path)
    yield made
    made.close()


@pytest.fixture
def mortal(mortal_broker: brokers.RunningBroker, tmp_path: Path) -> Iterator[Application]:
    made = Application(kombu_url(mortal_broker), tmp_path)
    yield made
    made.close()


def test_tasks_run_once_and_in_time(application: Application) -> None:
    worker = application.worker("once", "-c", "2")
    application.run_code(
        "for number in range(100): tasks.early.delay(number)\n"
        "tasks.early.apply_async((100,), countdown=2)\n"
        "import time; print(time.time(), file=open('sent', 'w'))\n"
    )
    wait_until(lambda: len(application.noted("ended")) >= 101, log=worker.log)
    assert sorted(application.noted("ended")) == list(range(101))
    sent = float((application.notes / "sent").read_text())
    assert application.times("began")[100] - sent >= 1.9
    worker.stop()
    assert worker.process.returncode == 0
    assert "Traceback" not in worker.log.read_text()


def test_priorities_decide_who_is_first(application: Application) -> None:
    application.run_code(
        "for priority in (0, 9, 3, 6): tasks.told.apply_async((priority,), priority=priority)"
    )
    worker = application.worker("first", "-c", "1", "--prefetch-multiplier", "1")
    kinds = [f"told-{priority}-0" for priority in (9, 6, 3, 0)]
    wait_until(lambda: all(application.noted(kind) for kind in kinds), log=worker.log)
    times = [application.times(kind)[int(kind[5])] for kind in kinds]
    assert times == sorted(times)


def test_a_worker_takes_no_more_than_it_may(application: Application) -> None:
    """What one worker has no room for, the next one gets, though the first was there before."""
    application.multiplier = 1
    first = application.worker("full", "-c", "1")
    application.run_code("for number in range(2): tasks.late.delay(number, 900)")
    wait_until(lambda: len(application.noted("began")) >= 1, log=first.log)
    second = application.worker("empty", "-c", "1")
    wait_until(lambda: len(application.noted("began")) >= 2, log=second.log)
    assert application.noted("ended") == []


def test_what_a_killed_worker_had_comes_again(application: Application) -> None:
    first = application.worker("killed", "-c", "1")
    application.run_code("tasks.late.delay(1, 600)\ntasks.told.delay(2)")
    wait_until(lambda: application.noted("began") == [1], log=first.log)
    first.kill()
    second = application.worker("next", "-c", "2")
    wait_until(lambda: application.noted("began") == [1, 1], log=second.log)
    wait_until(lambda: application.noted("told-5-0") + application.noted("told-5-1") == [2])


def test_a_killed_child_gives_its_task_back(application: Application) -> None:
    worker = application.worker("parent", "-c", "1")
    application.run_code("tasks.late.delay(1, 600)")
    wait_until(lambda: application.noted("began") == [1], log=worker.log)
    child = int((application.notes / "began").read_text().split()[2])
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: application.noted("began") == [1, 1], log=worker.log)


def test_orphans_do_not_hold_tasks(application: Application) -> None:
    """A child that is busy would keep the connection open, had it inherited the socket."""
    first = application.worker("orphaning", "-c", "1", "--max-tasks-per-child", "1")
    # The second child is forked while the connection is open.
    application.run_code(
        "tasks.early.delay(0)\nimport time; time.sleep(2)\ntasks.late.delay(1, 30)"
    )
    wait_until(lambda: 1 in application.noted("began"), log=first.log)
    first.kill_parent()
    second = application.worker("heir", "-c", "1")
    wait_until(lambda: application.noted("began").count(1) == 2, 10, second.log)
    first.kill()


def test_remote_control(application: Application) -> None:
    worker = application.worker("ruled", "-c", "1")
    assert "pong" in application.celery("inspect", "ping")
    assert "ruled@tests" in application.celery("status")
    application.run_code(
        "tasks.early.delay(0, 3)\ntasks.early.delay(1).revoke()\ntasks.early.delay(2)"
    )
    wait_until(lambda: application.noted("ended") == [0, 2], log=worker.log)
    assert "celery_tasks.late" in application.celery("inspect", "registered")
    application.run_code("tasks.app.control.shutdown()")
    worker.process.wait(60)


def test_events_are_heard(application: Application) -> None:
    worker = application.worker("telling", "-c", "1", "-E")
    heard = application.run_code(
        "import threading\n"
        "found = []\n"
        "threading.Timer(1, lambda: tasks.early.delay(1)).start()\n"
        "with tasks.app.connection_for_read() as connection:\n"
        "    receiver = tasks.app.events.Receiver(\n"
        "        connection, handlers={'*': lambda event: found.append(event['type'])})\n"
        "    for _ in receiver.itercapture(limit=None, timeout=5, wakeup=True):\n"
        "        if 'task-succeeded' in found: break\n"
        "    print(*found)\n"
    )
    assert {"task-received", "task-started", "task-succeeded"} <= set(heard.split()), heard
    assert worker.process.poll() is None


def test_workers_know_each_other(application: Application) -> None:
    first = application.worker("one", "-c", "1")
    second = application.worker("other", "-c", "1")
    wait_until(lambda: "sync with 1 nodes" in second.log.read_text(), log=second.log)
    second.stop()
    wait_until(lambda: "other@tests" in first.log.read_text(), log=first.log)


@pytest.mark.parametrize("url", ["lockkeeper+openwire://{}", "lockkeeper+failover:(tcp://{})"])
@pytest.mark.crash
def test_a_killed_broker_is_found_again(
    mortal: Application, mortal_broker: brokers.RunningBroker, url: str
) -> None:
    mortal.url = url.format(f"127.0.0.1:{mortal_broker.port}")
    worker = mortal.worker("patient", "-c", "1")
    mortal.run_code("for number in range(20): tasks.late.delay(number, 0.3)")
    wait_until(lambda: len(mortal.noted("ended")) >= 3, log=worker.log)
    mortal_broker.kill()
    mortal_broker.start()
    mortal.run_code("tasks.late.delay(20)")
    wait_until(lambda: set(mortal.noted("ended")) == set(range(21)), 90, worker.log)
    assert "pong" in mortal.celery("inspect", "ping", "--timeout", "5")


def test_the_scheduler_holds_what_is_not_due(
    scheduling_broker: brokers.RunningBroker, tmp_path: Path
) -> None:
    """Without a worker it shows best: the queue is empty until the task is due."""
    application = Application(kombu_url(scheduling_broker), tmp_path)
    counted = application.run_code(
        "import time\n"
        "tasks.early.apply_async((1,), countdown=3)\n"
        "with tasks.app.connection() as connection:\n"
        "    queue = tasks.app.amqp.default_queue(connection.default_channel)\n"
        "    for _ in range(3):\n"
        "        print(queue.queue_declare(passive=True).message_count)\n"
        "        time.sleep(2)\n"
    )
    assert counted.split() == ["0", "0", "1"]
    worker = application.worker("late", "-c", "1")
    try:
        wait_until(lambda: application.noted("ended") == [1], log=worker.log)
    finally:
        application.close()
