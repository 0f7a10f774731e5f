"""Names of destinations, and wildcards over them: `*` is one level, `>` all levels below."""

from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

NAME_CHARACTERS_MAX = 1024
_LEVEL = r"[^.*>,\s]([^.*>,\n\r\t]*[^.*>,\s])?"
NAME_PATTERN = rf"^{_LEVEL}(\.{_LEVEL})*$"
WILDCARD_PATTERN = rf"^(>|(\*|{_LEVEL})(\.(\*|{_LEVEL}))*(\.>)?)$"


def check_levels(name: str) -> list[str]:
    """Return the levels of *name*; raises ValueError for what no name or wildcard may hold."""
    if "://" in name:
        raise ValueError(f"expected a name without a scheme, found {name!r}")
    if "," in name:
        raise ValueError(f"one name is expected, {name!r} lists several")
    levels = name.split(".")
    if not all(levels):
        raise ValueError(f"{name!r} has an empty level")
    for level in levels:
        if level != level.strip() or not level.isprintable():
            raise ValueError(f"level {level!r} of {name!r} has white space around it")
    return levels


def check_wildcard(pattern: str) -> str:
    """Return *pattern* if it is a name or a wildcard; raises ValueError with the reason."""
    levels = check_levels(pattern)
    for index, level in enumerate(levels):
        for wildcard in "*>":
            if wildcard in level and level != wildcard:
                raise ValueError(f"{wildcard!r} must stand alone in its level, found {level!r}")
        if level == ">" and index + 1 < len(levels):
            raise ValueError(f"'>' must be the last level, found {pattern!r}")
    return pattern


def check_name(name: str) -> str:
    """Return *name* if it is the name of one destination; raises ValueError with the reason."""
    if any(wildcard in level for level in check_levels(name) for wildcard in "*>"):
        raise ValueError(f"a destination's name has no wildcard, found {name!r}")
    return name


def check_prefix(prefix: str) -> str:
    """Return *prefix* if names can begin with it, such as `ActiveMQ.DLQ.Queue.`."""
    check_name(f"{prefix}x")
    return prefix


def check_suffix(suffix: str) -> str:
    """Return *suffix* if names can end with it, such as `.DLQ`."""
    check_name(f"x{suffix}")
    return suffix


def check_part(part: str) -> str:
    """Return *part* if it may stand before or behind the name of a topic in that of a queue."""
    levels = part.split(".")
    for level in levels:
        if ("*" in level and level != "*") or not level.isprintable():
            raise ValueError(f"level {level!r} of {part!r} is neither '*' nor a part of a name")
    if any(forbidden in part for forbidden in (">", ",", "?", "://")) or part != part.strip():
        raise ValueError(f"{part!r} cannot be part of a queue's name")
    return part


def _schema(pattern: str) -> WithJsonSchema:
    rule = {"rule": "!self.contains('://')", "message": "expected a name without a scheme"}
    return WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": NAME_CHARACTERS_MAX,
            "pattern": pattern,
            "x-kubernetes-validations": [rule],
        }
    )


_LENGTH = Field(min_length=1, max_length=NAME_CHARACTERS_MAX)

DestinationName = Annotated[str, _LENGTH, AfterValidator(check_name), _schema(NAME_PATTERN)]
"""The name of one queue or topic, without a scheme."""

Wildcard = Annotated[str, _LENGTH, AfterValidator(check_wildcard), _schema(WILDCARD_PATTERN)]
"""A name, or a pattern for many: `ORDERS.*`, `ORDERS.>`, `>`."""

QueuePart = Annotated[
    str,
    Field(max_length=NAME_CHARACTERS_MAX),
    AfterValidator(check_part),
]
"""What stands around a topic's name in that of a queue; a level `*` stands for any."""

NamePrefix = Annotated[
    str,
    Field(max_length=NAME_CHARACTERS_MAX),
    AfterValidator(check_prefix),
]
"""What the name of a destination begins with."""

NameSuffix = Annotated[
    str,
    Field(max_length=NAME_CHARACTERS_MAX),
    AfterValidator(check_suffix),
]
"""What the name of a destination ends with."""
