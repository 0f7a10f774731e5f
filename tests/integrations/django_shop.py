"""Tasks of a Django application, for the tests of its backend."""

from django.tasks import TaskContext, task

DONE: list[object] = []


@task  # type: ignore[untyped-decorator]
def pay(order: int, currency: str = "EUR") -> None:
    DONE.append((order, currency))


@task  # type: ignore[untyped-decorator]
async def pay_later(order: int) -> None:
    DONE.append(order)


@task(takes_context=True)  # type: ignore[untyped-decorator]
def tell(context: TaskContext) -> None:
    result = context.task_result
    DONE.append((result.id, result.task.queue_name, result.task.priority))


@task  # type: ignore[untyped-decorator]
def fail() -> None:
    raise ValueError("no such order")
