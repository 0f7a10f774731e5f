"""The taskiq broker: `LockkeeperBroker("tcp://host:port")` carries taskiq's tasks.

Comes in: taskiq's messages as bytes. Never here: what a task is, or what becomes of its result.
"""

from lockkeeper.integrations.taskiq.broker import LockkeeperBroker

__all__ = ["LockkeeperBroker"]
