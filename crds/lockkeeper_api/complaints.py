"""Complaints of pydantic in words for the author of a resource."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel


def complaint(model: type[BaseModel], detail: Any) -> tuple[str, str]:
    """Return the path of the field and the reason of one of pydantic's error details.

    *model* is the resource's; the field nearest to an unknown one is looked up in it.
    """
    location: tuple[str | int, ...] = detail["loc"]
    path = field_path(location)
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return path, f"no such field{_nearest(model, location)}"
    if kind == "missing":
        return path, "is required"
    if kind == "value_error":
        return path, str(context["error"])
    if kind == "model_type":
        return path, f"expected a mapping, found {detail['input']!r}"
    reason = str(detail["msg"]).removeprefix("Input ")
    return path, f"{reason}, found {detail['input']!r}"


def field_path(location: Sequence[str | int]) -> str:
    """Return a field's path as it is written in documentation: `spec.listeners[0].port`."""
    text = ""
    for step in location:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def _nearest(model: type[BaseModel], location: tuple[str | int, ...]) -> str:
    """Return a hint at the known field nearest to the unknown one at *location*."""
    parent: type[BaseModel] | None = model
    for step in location[:-1]:
        if isinstance(step, str) and parent is not None:
            parent = _inner_model(parent, step)
    if parent is None:
        return ""
    names = [field.alias or name for name, field in parent.model_fields.items()]
    close = get_close_matches(str(location[-1]), names, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known here: {', '.join(names)}"


def _inner_model(model: type[BaseModel], alias: str) -> type[BaseModel] | None:
    """Return the model of the field called *alias*, that of its items if it is a list."""
    for name, field in model.model_fields.items():
        if alias in (name, field.alias):
            return _model_in(field.annotation)
    return None


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model inside `Model`, `Model | None`, `list[Model]` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    arguments = get_args(annotation)
    if get_origin(annotation) is Annotated:
        arguments = arguments[:1]
    found = (_model_in(argument) for argument in arguments)
    return next((inner for inner in found if inner is not None), None)
