"""A label selector, as Kubernetes has them.

The operator itself reads it, so that no API server looks into it: one that asks for nothing, as
its words are misspelt, would select everything.
"""

from typing import Any, Literal

from pydantic import ValidationError, model_validator

from lockkeeper_api.complaints import complaint
from lockkeeper_api.meta import ApiModel

NEEDS_VALUES = "In and NotIn need values, Exists and DoesNotExist have none"


class Requirement(ApiModel):
    """A requirement of one label."""

    key: str
    """Name of the label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """Relation of its value to `values`."""
    values: list[str] | None = None
    """Values for In and NotIn."""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> "Requirement":
        if (self.operator in ("In", "NotIn")) != bool(self.values):
            raise ValueError(NEEDS_VALUES)
        return self


class LabelSelector(ApiModel):
    """Requirements of an object's labels; none selects every object."""

    match_labels: dict[str, str] | None = None
    """Labels with their values."""
    match_expressions: list[Requirement] | None = None
    """Further requirements."""


def check_selector(said: dict[str, Any]) -> dict[str, Any]:
    """Return *said* if it is a selector; ValueError otherwise."""
    try:
        LabelSelector.model_validate(said)
    except ValidationError as error:
        path, reason = complaint(LabelSelector, error.errors()[0])
        raise ValueError(f"{path}: {reason}") from error
    return said
