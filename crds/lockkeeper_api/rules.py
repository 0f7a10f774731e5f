"""Rules that the API server itself checks, written in CEL beside a field or model."""

from pydantic.config import JsonDict
from pydantic.types import JsonValue


def rules(*pairs: tuple[str, str]) -> JsonDict:
    """Return what a schema holds for rules, given as pairs of expression and complaint.

    A rule that mentions oldSelf is about changes. The API server estimates what a rule may cost
    at most and refuses a definition that is too dear: strings that are compared need a maxLength,
    lists a maxItems.
    """
    listed: list[JsonValue] = [{"rule": rule, "message": message} for rule, message in pairs]
    return {"x-kubernetes-validations": listed}
