"""Fields of a request's header, read as what they mean; a wrong one is refused by its name."""

from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Response

_LONG_MAX = 1 << 63
_INTEGER_END = 1 << 31
TEXT_CHARACTERS_MAX = 64 << 10


class Refusal(Exception):
    """A request that is not carried out, with the code and the remark of its answer."""

    def __init__(self, code: int, remark: str) -> None:
        super().__init__(remark)
        self.code = code


def text(request: Command, name: str, otherwise: str | None = None) -> str:
    """Return a field. Raises Refusal when it is missing, unless there is an *otherwise*."""
    value = request.fields.get(name, otherwise)
    if value is None:
        raise Refusal(Response.SYSTEM_ERROR, f"the custom field <{name}> is null")
    if len(value) > TEXT_CHARACTERS_MAX:
        raise Refusal(
            Response.SYSTEM_ERROR,
            f"the field {name} has {len(value)} characters, more than {TEXT_CHARACTERS_MAX}",
        )
    return value


def number(request: Command, name: str, otherwise: int | None = None) -> int:
    """Return a field that is a whole number of 64 bits. Raises Refusal, see `text`."""
    told = request.fields.get(name)
    if told is None and otherwise is not None:
        return otherwise
    told = text(request, name)
    try:
        value = int(told)
    except ValueError:
        value = _LONG_MAX
    if not -_LONG_MAX <= value < _LONG_MAX:
        raise Refusal(Response.SYSTEM_ERROR, f"the field {name} is no number: {told[:40]}")
    return value


def integer(request: Command, name: str, otherwise: int | None = None) -> int:
    """Return a field that is a whole number of 32 bits. Raises Refusal, see `text`."""
    value = number(request, name, otherwise)
    if not -_INTEGER_END <= value < _INTEGER_END:
        raise Refusal(Response.SYSTEM_ERROR, f"the field {name} has more than 32 bits: {value}")
    return value


def truth(request: Command, name: str, otherwise: bool = False) -> bool:
    """Return a field that is true or false."""
    told = request.fields.get(name)
    return otherwise if told is None else told.lower() == "true"
