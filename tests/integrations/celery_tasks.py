"""A Celery application for tests: its tasks note in files that they began and ended.

BROKER_URL names the broker, QUEUE the queue, NOTES the folder with the notes.
"""

# mypy: disable-error-code="untyped-decorator"
import os
import time
from pathlib import Path
from typing import Any

from celery import Celery

NOTES = Path(os.environ["NOTES"])

app = Celery("celery_tasks", broker=os.environ["BROKER_URL"])
app.conf.update(
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    worker_prefetch_multiplier=int(os.environ.get("MULTIPLIER", "4")),
    task_default_priority=5,
    task_default_queue=os.environ["QUEUE"],
)
app.conf.task_publish_retry_policy = {"max_retries": 100, "interval_max": 1.0}


def note(kind: str, number: int) -> None:
    """Append one line, whole: one write of few bytes."""
    line = f"{number} {time.time():.3f} {os.getpid()}\n".encode()
    out = os.open(NOTES / kind, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(out, line)
    os.close(out)


@app.task
def early(number: int, seconds: float = 0.0) -> None:
    """Be acknowledged before it runs."""
    note("began", number)
    time.sleep(seconds)
    note("ended", number)


@app.task(acks_late=True, reject_on_worker_lost=True)
def late(number: int, seconds: float = 0.0) -> None:
    """Be acknowledged after it has run."""
    note("began", number)
    time.sleep(seconds)
    note("ended", number)


@app.task(bind=True)
def told(self: Any, number: int) -> None:
    """Note under which conditions it came."""
    info = self.request.delivery_info
    note(f"told-{info['priority']}-{int(info['redelivered'])}", number)
