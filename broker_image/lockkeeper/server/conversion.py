"""From the models of a resource to the core's own values, which know no pydantic.

A policy of the core is a dataclass whose fields are called like those of its model; so a new
policy needs no line here.
"""

from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import BaseModel

Policy = TypeVar("Policy")


def milliseconds(duration: timedelta) -> int:
    """Return *duration* in whole ms."""
    return duration // timedelta(milliseconds=1)


def converted(model: BaseModel, kind: type[Policy]) -> Policy:
    """Return *model* as the dataclass *kind*: durations in ms, lists as tuples, enumerations.

    What the model leaves absent gets the dataclass's default. Raises AttributeError for a field
    that the model does not have.
    """
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]
        value = getattr(model, field.name)
        if value is not None:
            values[field.name] = _value(value, hints[field.name])
    return kind(**values)


def _value(value: Any, hint: Any) -> Any:
    if isinstance(value, timedelta):
        return milliseconds(value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    if isinstance(value, BaseModel):
        (kind,) = (each for each in (hint, *get_args(hint)) if is_dataclass(each))
        return converted(value, kind)  # type: ignore[arg-type]
    if isinstance(value, list):
        return tuple(_value(item, get_args(hint)[0]) for item in value)
    return value
