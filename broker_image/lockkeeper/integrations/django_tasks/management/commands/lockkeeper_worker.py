"""`manage.py lockkeeper_worker`: carries out tasks until it gets SIGTERM or Ctrl-C."""

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.tasks import DEFAULT_TASK_BACKEND_ALIAS

from lockkeeper.integrations.django_tasks.worker import Worker


class Command(BaseCommand):  # type: ignore[misc]
    """The command; Django asks for this name."""

    help = "Carries out the tasks of a backend."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        parser.add_argument(
            "--backend", default=DEFAULT_TASK_BACKEND_ALIAS, help="Alias in the setting TASKS."
        )

    def handle(self, *arguments: Any, **options: Any) -> None:
        """Work; the task in hand is finished before the end."""
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        Worker(options["backend"]).run(stopping)
