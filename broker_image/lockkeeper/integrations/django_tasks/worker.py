"""The worker of django.tasks: it takes tasks from the broker, one after the other."""

import json
import logging
import threading
from datetime import datetime
from typing import Any, cast

from django.db import close_old_connections
from django.tasks import task_backends
from django.tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
from django.tasks.signals import task_finished, task_started
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.utils.module_loading import import_string

from lockkeeper.client import Acknowledge, ReceivedMessage, connect
from lockkeeper.integrations.django_tasks.backend import ID_CHARACTERS, LockkeeperBackend

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.5


class Worker:
    """Carries out the tasks of one backend's queues.

    A task is acknowledged after its work, so that of a worker that is killed comes again. A task
    that raises is a dead letter, with its cause.
    """

    def __init__(self, alias: str) -> None:
        """*alias* is that of the setting TASKS. Raises TypeError for another kind of backend."""
        backend = task_backends[alias]
        if not isinstance(backend, LockkeeperBackend):
            raise TypeError(f"TASKS[{alias!r}]: expected the BACKEND LockkeeperBackend")
        self._backend = backend
        self._name = get_random_string(ID_CHARACTERS)

    def run(self, stopping: threading.Event) -> None:
        """Work until told to stop. Raises ConnectionFailedError when no broker is there."""
        queues = ",".join(self._backend.queue_of(name) for name in sorted(self._backend.queues))
        with connect(self._backend.url) as connection:
            session = connection.session(acknowledge=Acknowledge.INDIVIDUAL)
            consumer = session.consumer(queues, prefetch=1)
            while not stopping.is_set():
                message = consumer.receive(timeout=POLL_SECONDS)
                if message is not None:
                    self._carry_out(message)

    def _carry_out(self, message: ReceivedMessage) -> None:
        close_old_connections()
        try:
            result = self._read(message)
        except Exception as error:
            logger.exception("%s is no task that can be run here", message.message_id)
            message.reject(error)
            return
        try:
            self._call(result)
        except Exception as error:
            self._end(result, TaskResultStatus.FAILED, error)
            message.reject(error)
        else:
            self._end(result, TaskResultStatus.SUCCESSFUL)
            message.acknowledge()
        finally:
            close_old_connections()

    def _read(self, message: ReceivedMessage) -> TaskResult:
        """Return what a message asks for. Raises ImportError, ValueError and their kin."""
        body: dict[str, Any] = json.loads(cast("str", message.body))
        found = import_string(body["task"])
        if not isinstance(found, Task):
            raise ValueError(f"{body['task']} is no task: decorate it with django.tasks.task")
        enqueued, now = datetime.fromisoformat(body["enqueued_at"]), timezone.now()
        task = found.using(priority=body["priority"], queue_name=body["queue_name"])
        return TaskResult(
            task=task, id=message.correlation_id or "",
            status=TaskResultStatus.RUNNING, enqueued_at=enqueued,
            started_at=now, last_attempted_at=now, finished_at=None, args=body["args"],
            kwargs=body["kwargs"], backend=self._backend.alias, errors=[],
            worker_ids=[self._name] * message.delivery_count,
        )  # fmt: skip

    def _call(self, result: TaskResult) -> None:
        task_started.send(type(self._backend), task_result=result)
        task = result.task
        context = (TaskContext(task_result=result),) if task.takes_context else ()
        task.call(*context, *result.args, **result.kwargs)

    def _end(
        self, result: TaskResult, status: TaskResultStatus, error: Exception | None = None
    ) -> None:
        """Tell whom Django's signal tells; it is Django that logs failures then."""
        if error is not None:
            kind = type(error)
            path = f"{kind.__module__}.{kind.__qualname__}"
            logger.error("task %s failed", result.task.name, exc_info=error)
            result.errors.append(TaskError(exception_class_path=path, traceback=str(error)))
        # Django's own backends change results like this: they are frozen for everybody else.
        object.__setattr__(result, "status", status)
        object.__setattr__(result, "finished_at", timezone.now())
        task_finished.send(type(self._backend), task_result=result)
