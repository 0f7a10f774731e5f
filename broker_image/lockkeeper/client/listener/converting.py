"""Bodies as the types that functions ask for: pydantic and msgspec models, dataclasses.

Neither library is imported: a type says itself which one it belongs to.
"""

import dataclasses
import json
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from lockkeeper.client.blobs import Blob
from lockkeeper.client.messages import ReceivedMessage
from lockkeeper.message.bodies import Body
from lockkeeper.message.primitives import Byte, Char, Float, Long, Short

Convert = Callable[[ReceivedMessage], Any]
_PLAIN = (str, bytes, dict, list)
_FILLED = (*_PLAIN, int, float, bool, type(None), Byte, Short, Long, Char, Float)
"""Types that JSON and map messages have."""


class InvalidBodyError(ValueError):
    """A body is not what the function asks for."""


def converter(hint: Any) -> Convert:
    """Return the function that makes what *hint* names of a message.

    It raises InvalidBodyError. TypeError when nothing is known of such a type.
    """
    if hint is Any or hint is ReceivedMessage:
        return (lambda message: message.body) if hint is Any else (lambda message: message)
    if hint is Blob:
        return _blob
    if hasattr(hint, "model_validate"):
        return _guarded(hint, lambda body: _pydantic(hint, body))
    if hasattr(hint, "__struct_fields__"):
        return _guarded(hint, lambda body: _msgspec(hint, body))
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        check_fields(hint)
        return _guarded(hint, lambda body: build(hint, _parsed(body), "body"))
    if hint in _PLAIN or get_origin(hint) in _PLAIN:
        return _guarded(hint, lambda body: build(hint, _plain(hint, body), "body"))
    name = getattr(hint, "__name__", hint)
    raise TypeError(
        f"no message becomes a {name}: a function takes a ReceivedMessage, str, bytes, dict, "
        "list, a Blob, a dataclass, or a model of pydantic or msgspec"
    )


def _blob(message: ReceivedMessage) -> Blob:
    if message.blob is None:
        raise InvalidBodyError(f"the body is no Blob: it is a {message.message_type.name.lower()}")
    return message.blob


def check_fields(kind: Any, seen: tuple[Any, ...] = ()) -> None:
    """Raise TypeError for a dataclass with a field that no message can fill.

    Every message would be a dead letter. NameError for a hint that is not there.
    """
    if kind in seen:
        return
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if field.init:
            for leaf in _leaves(hints[field.name]):
                if dataclasses.is_dataclass(leaf):
                    check_fields(leaf, (*seen, kind))
                elif isinstance(leaf, type) and not any(issubclass(each, leaf) for each in _FILLED):
                    raise TypeError(
                        f"{kind.__name__}.{field.name}: no message has a {leaf.__name__}; "
                        "a model of pydantic or msgspec makes one of a text or a number"
                    )


def _leaves(hint: Any) -> Iterator[Any]:
    """Yield the types that a hint is made of."""
    if get_origin(hint) in (Union, types.UnionType, list, dict):
        for argument in get_args(hint):
            yield from _leaves(argument)
    else:
        yield hint


def _guarded(hint: Any, convert: Callable[[Body], Any]) -> Convert:
    def converted(message: ReceivedMessage) -> Any:
        try:
            return convert(message.body)
        # MalformedMessageError, the errors of json and of pydantic are ValueErrors, too.
        except (ValueError, TypeError, RecursionError) as error:
            name = getattr(hint, "__name__", hint)
            raise InvalidBodyError(f"the body is no {name}: {error}") from error

    return converted


def _pydantic(model: Any, body: Body) -> Any:
    if isinstance(body, str | bytes):
        return model.model_validate_json(body)
    return model.model_validate(body)


def _msgspec(struct: Any, body: Body) -> Any:
    msgspec = sys.modules["msgspec"]
    try:
        if isinstance(body, str | bytes):
            return msgspec.json.decode(body, type=struct)
        return msgspec.convert(body, struct)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error


def _parsed(body: Body) -> Any:
    return json.loads(body) if isinstance(body, str | bytes) else body


def _plain(hint: Any, body: Body) -> Any:
    """Return a body as one of the plain types; JSON is read where a dict or a list is wanted."""
    kind = get_origin(hint) or hint
    if kind is str and isinstance(body, bytes):
        return body.decode()
    if kind is bytes and isinstance(body, str):
        return body.encode()
    if kind in (dict, list) and isinstance(body, str | bytes):
        return json.loads(body)
    return dict(body) if kind is dict and isinstance(body, Mapping) else body


def build(hint: Any, value: Any, path: str) -> Any:
    """Return *value* as *hint* wants it, dataclasses within it too. Raises ValueError."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return _build_one_of(arguments, value, path)
    if origin is list:
        _check_type(isinstance(value, list), path, "list", value)
        return [build(arguments[0], each, f"{path}[{n}]") for n, each in enumerate(value)]
    if origin is dict:
        _check_type(isinstance(value, Mapping), path, "mapping", value)
        return {key: build(arguments[1], each, f"{path}.{key}") for key, each in value.items()}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _build_dataclass(hint, value, path)
    if not isinstance(hint, type):
        return value
    if hint is float and type(value) is int:
        return float(value)
    is_fit = isinstance(value, hint) and not (hint is int and isinstance(value, bool))
    _check_type(is_fit, path, hint.__name__, value)
    return value


def _build_one_of(choices: tuple[Any, ...], value: Any, path: str) -> Any:
    reasons = []
    for choice in choices:
        try:
            return build(choice, value, path)
        except ValueError as error:
            reasons.append(str(error))
    raise ValueError("; ".join(reasons))


def _build_dataclass(kind: Any, value: Any, path: str) -> Any:
    _check_type(isinstance(value, Mapping), path, "mapping", value)
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    unknown = sorted(set(value) - set(fields))
    if unknown:
        raise ValueError(f"{path} has the unknown field {unknown[0]}")
    absent = [
        name
        for name, field in fields.items()
        if name not in value
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    if absent:
        raise ValueError(f"{path} lacks the field {absent[0]}")
    hints = get_type_hints(kind)
    return kind(
        **{name: build(hints[name], each, f"{path}.{name}") for name, each in value.items()}
    )


def _check_type(is_fit: bool, path: str, wanted: str, value: Any) -> None:
    if not is_fit:
        raise ValueError(f"{path} is a {type(value).__name__}, not a {wanted}")


def encoded(result: Any) -> Body | Blob:
    """Return what a function has returned as a body: models and dataclasses as JSON."""
    if isinstance(result, Blob):
        return result
    if hasattr(result, "model_dump_json"):
        text: str = result.model_dump_json()
        return text
    if hasattr(result, "__struct_fields__"):
        packed: bytes = sys.modules["msgspec"].json.encode(result)
        return packed.decode()
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return json.dumps(dataclasses.asdict(result))
    answer: Body = result
    return answer
