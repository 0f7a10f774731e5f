"""The backend of django.tasks: it sends each task to the queue of its name.

TASKS = {"default": {
    "BACKEND": "lockkeeper.integrations.django_tasks.backend.LockkeeperBackend",
    "OPTIONS": {"url": "failover:(tcp://127.0.0.1:61616)"},
}}
"""

import json
import threading
from collections.abc import Sequence
from typing import Any

from django.tasks.backends.base import BaseTaskBackend
from django.tasks.base import Task, TaskResult, TaskResultStatus
from django.tasks.signals import task_enqueued
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.utils.json import normalize_json

from lockkeeper.client import DEFAULT_URL, Connection, Producer, connect

ID_CHARACTERS = 32
DELAY_PROPERTY = "AMQ_SCHEDULED_DELAY"
"""ActiveMQ's property: the broker delivers the message so many ms later."""
PRIORITY_USUAL, PRIORITY_MAX = 4, 9


class LockkeeperBackend(BaseTaskBackend):  # type: ignore[misc]
    """Sends tasks, with one connection for all threads of the process.

    A task is on the broker's disk when `enqueue` returns. `OPTIONS["url"]` is the client's;
    `OPTIONS["prefix"]` stands before the names of queues.
    """

    supports_defer = True
    supports_async_task = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.url: str = self.options.get("url", DEFAULT_URL)
        self._prefix: str = self.options.get("prefix", "django.")
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._producer: Producer | None = None

    def queue_of(self, name: str) -> str:
        """Return the broker's name of a queue of tasks."""
        return f"{self._prefix}{name}"

    def enqueue(self, task: Task, args: Sequence[Any], kwargs: dict[str, Any]) -> TaskResult:
        """Send a task. Raises InvalidTask, TypeError for arguments that are no JSON, and
        MessagingError.
        """
        self.validate_task(task)
        now = timezone.now()
        identifier = get_random_string(ID_CHARACTERS)
        body = {
            "task": task.module_path,
            "args": normalize_json(list(args)),
            "kwargs": normalize_json(kwargs),
            "priority": task.priority,
            "queue_name": task.queue_name,
            "enqueued_at": now.isoformat(),
        }
        properties: dict[str, int] = {}
        if task.run_after is not None:
            delay = round((task.run_after - timezone.now()).total_seconds() * 1000)
            properties = {DELAY_PROPERTY: delay} if delay > 0 else {}
        with self._lock:
            self._opened_producer().send(
                json.dumps(body),
                properties,
                destination=self.queue_of(task.queue_name),
                priority=jms_priority(task.priority),
                correlation_id=identifier,
                type=task.module_path,
            )
        result = TaskResult(
            task=task, id=identifier, status=TaskResultStatus.READY, enqueued_at=now,
            started_at=None, last_attempted_at=None, finished_at=None, args=body["args"],
            kwargs=body["kwargs"], backend=self.alias, errors=[], worker_ids=[],
        )  # fmt: skip
        task_enqueued.send(type(self), task_result=result)
        return result

    def _opened_producer(self) -> Producer:
        """Return the producer, connected at the first task. The lock is held."""
        if self._producer is None:
            self._connection = connect(self.url)
            self._producer = self._connection.session().producer()
        return self._producer

    def close(self) -> None:
        """Close the connection; the next task opens another one."""
        with self._lock:
            connection, self._connection, self._producer = self._connection, None, None
        if connection is not None:
            connection.close()


def jms_priority(priority: int) -> int:
    """Return the JMSPriority (0 to 9, 4 is usual) of a task's priority (-100 to 100)."""
    steps = PRIORITY_USUAL if priority < 0 else PRIORITY_MAX - PRIORITY_USUAL
    return PRIORITY_USUAL + round(priority * steps / 100)
