"""The backend of django.tasks, with Django 6, which is installed apart from `dev`."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("django.tasks")
sys.path.insert(0, str(Path(__file__).parent))

import django
from django.conf import settings

if not settings.configured:
    settings.configure(USE_TZ=True)
    django.setup()

from django.tasks import task_backends
from django.test.utils import override_settings
from django.utils import timezone

from lockkeeper.client import connect
from lockkeeper.testing.in_process import InProcessBroker

pytestmark = pytest.mark.thorough
SOON = 20.0


@pytest.fixture
def shop(lockkeeper_broker: InProcessBroker) -> Iterator[Any]:
    backend = "lockkeeper.integrations.django_tasks.backend.LockkeeperBackend"
    tasks: dict[str, Any] = {
        "default": {"BACKEND": backend, "OPTIONS": {"url": lockkeeper_broker.url}}
    }
    tasks["default"]["QUEUES"] = ["default", "mail"]
    with override_settings(TASKS=tasks):
        import django_shop

        django_shop.DONE.clear()
        yield django_shop
        task_backends["default"].close()


@contextmanager
def worker() -> Iterator[None]:
    from lockkeeper.integrations.django_tasks.worker import Worker

    stopping = threading.Event()
    thread = threading.Thread(target=Worker("default").run, args=(stopping,))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def wait_for(shop: Any, count: int) -> list[object]:
    deadline = time.monotonic() + SOON
    while len(shop.DONE) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    return list(shop.DONE)


def left(broker: InProcessBroker, queue: str) -> list[Any]:
    with connect(broker.url) as connection:
        return list(connection.session().browse(queue))


def test_tasks_are_carried_out_by_a_worker(shop: Any, lockkeeper_broker: InProcessBroker) -> None:
    result = shop.pay.enqueue(7, currency="CHF")
    assert result.status == "READY"
    shop.pay_later.enqueue(8)
    told = shop.tell.using(queue_name="mail", priority=-5).enqueue()
    with worker():
        done = wait_for(shop, 3)
    assert [each for each in done if each != (told.id, "mail", -5)] == [(7, "CHF"), 8]
    assert len(done) == 3
    assert left(lockkeeper_broker, "django.default") == []


def test_run_after_is_held_by_the_broker(shop: Any, lockkeeper_broker: InProcessBroker) -> None:
    shop.pay.using(run_after=timezone.now() + timedelta(hours=2)).enqueue(1)
    shop.pay.enqueue(2)
    with worker():
        assert wait_for(shop, 1) == [(2, "EUR")]
        lockkeeper_broker.advance("2h")
        assert wait_for(shop, 2) == [(2, "EUR"), (1, "EUR")]


def test_a_task_that_raises_is_a_dead_letter(shop: Any, lockkeeper_broker: InProcessBroker) -> None:
    failed = shop.fail.enqueue()
    shop.pay.enqueue(1)
    with worker():
        wait_for(shop, 1)
    (letter,) = left(lockkeeper_broker, "ActiveMQ.DLQ")
    assert letter.correlation_id == failed.id
    assert "no such order" in str(letter.properties["dlqDeliveryFailureCause"])


def test_a_message_that_is_no_task_is_a_dead_letter(
    shop: Any, lockkeeper_broker: InProcessBroker
) -> None:
    with connect(lockkeeper_broker.url) as connection:
        producer = connection.session().producer("django.default")
        producer.send("no JSON")
        producer.send('{"task": "os.system", "args": ["true"], "kwargs": {}, "priority": 0, '
                      '"enqueued_at": "2026-01-01T00:00:00+00:00"}')  # fmt: skip
    shop.pay.enqueue(1)
    with worker():
        wait_for(shop, 1)
    assert len(left(lockkeeper_broker, "ActiveMQ.DLQ")) == 2


def test_priorities_go_from_djangos_range_to_that_of_jms(
    shop: Any, lockkeeper_broker: InProcessBroker
) -> None:
    for priority in (-100, 0, 100):
        shop.pay.using(priority=priority).enqueue(1)
    waiting = left(lockkeeper_broker, "django.default")
    assert [message.priority for message in waiting] == [0, 4, 9]


def test_what_is_sent_survives_a_kill(shop: Any, lockkeeper_broker: InProcessBroker) -> None:
    shop.pay.enqueue(1)
    task_backends["default"].close()
    lockkeeper_broker.kill()
    lockkeeper_broker.start()
    with worker():
        assert wait_for(shop, 1) == [(1, "EUR")]
