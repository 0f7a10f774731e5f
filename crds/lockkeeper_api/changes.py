"""Changes of a resource while its brokers run: each field says what a change of it takes.

A field without a mark takes a restart, and so does everything in it that has no mark of its own.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any, TypeAlias, get_args

from pydantic.fields import FieldInfo

from lockkeeper_api.meta import ApiModel


class Change(Enum):
    """The effort that a change of a field takes; it stands in the field's `Annotated`."""

    RESTART = "restart"
    """Broker processes read it when they start."""
    POD = "pod"
    """No broker process reads it, but a pod must be made anew."""
    LIVE = "live"
    """Broker processes take it over while they run."""
    OPERATOR = "operator"
    """The operator carries it out, and brokers go on running."""


RESTART, POD, LIVE, OPERATOR = Change

Exclusion: TypeAlias = dict[str, Any]
"""Fields to leave out, as pydantic's `model_dump` takes them."""


def change_of(field: FieldInfo) -> Change:
    """Return what a change of *field* takes."""
    return next((each for each in field.metadata if isinstance(each, Change)), RESTART)


def names(model: type[ApiModel], *changes: Change) -> frozenset[str]:
    """Return the fields of *model* whose change takes one of *changes*."""
    return frozenset(
        name for name, field in model.model_fields.items() if change_of(field) in changes
    )


def without(model: type[ApiModel], *changes: Change) -> Exclusion:
    """Return what to leave out of a dump of *model*, within its parts and lists of parts, too."""
    excluded: Exclusion = {}
    for name, field in model.model_fields.items():
        if change_of(field) in changes:
            excluded[name] = True
        elif inner := _within(field, changes):
            excluded[name] = inner
    return excluded


def paths(model: type[ApiModel], *changes: Change) -> Iterator[str]:
    """Yield where a resource has what *changes* are enough for, such as `storage.size`."""
    for name, field in model.model_fields.items():
        path = field.alias or name
        if change_of(field) in changes:
            yield path
            continue
        for kind, is_item in _models(field.annotation):
            for inner in paths(kind, *changes):
                yield f"{path}[].{inner}" if is_item else f"{path}.{inner}"


def _within(field: FieldInfo, changes: tuple[Change, ...]) -> Exclusion:
    for kind, is_item in _models(field.annotation):
        if inner := without(kind, *changes):
            return {"__all__": inner} if is_item else inner
    return {}


def _models(annotation: Any, is_item: bool = False) -> Iterator[tuple[type[ApiModel], bool]]:
    """Yield the models that a field may have, and whether as items of a list."""
    if isinstance(annotation, type) and issubclass(annotation, ApiModel):
        yield annotation, is_item
    for each in get_args(annotation):
        yield from _models(each, is_item or getattr(annotation, "__origin__", None) is list)
