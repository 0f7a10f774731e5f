"""Shape of a body: its format, guessed from how it begins, and its fields."""

import json
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from lockkeeper_analytics.shapes.avro_shape import (
    CONTAINER,
    SINGLE_OBJECT,
    NoAvroError,
    add_avro,
    add_single_object,
)
from lockkeeper_analytics.shapes.fields import Fields
from lockkeeper_analytics.shapes.json_shape import ROOT, add_json
from lockkeeper_analytics.shapes.xml_shape import NoXmlError, add_xml

NAMED = {"map": "map", "stream": "stream"}
"""Types of messages whose bodies are told as JSON, and their formats."""
_JAVA = b"\xac\xed\x00\x05"


class Shape(NamedTuple):
    """The format of a body, and the types of each field by its place."""

    format: str
    fields: Mapping[str, Set[str]]


def shape_of(
    message_type: str | None, text: str | None, octets: bytes | None, masks: Sequence[str] = ()
) -> Shape | None:
    """Return the shape of a body, which is a *text* or *octets*; None: it has neither.

    *masks* are those of `Fields`.
    """
    if text is not None:
        return _text_shape(message_type, text, masks)
    if octets is None:
        return None
    return _octets_shape(octets, masks)


def _text_shape(message_type: str | None, text: str, masks: Sequence[str]) -> Shape:
    begin = text.lstrip("\ufeff \t\r\n")[:1]
    fields = Fields(masks)
    if begin and begin in "{[":
        try:
            add_json(fields, json.loads(text.lstrip("\ufeff")))
        except (ValueError, RecursionError):
            return _plain("text")
        return Shape(NAMED.get(message_type or "", "json"), fields.types)
    if begin == "<":
        try:
            add_xml(fields, text.lstrip("\ufeff \t\r\n"))
        except NoXmlError:
            return _plain("text")
        return Shape("xml", fields.types)
    return _plain("text")


def _octets_shape(octets: bytes, masks: Sequence[str]) -> Shape:
    if octets.startswith(CONTAINER):
        fields = Fields(masks)
        try:
            add_avro(fields, octets)
        except NoAvroError:
            return _plain("avro")
        return Shape("avro", fields.types)
    if octets.startswith(SINGLE_OBJECT):
        fields = Fields(masks)
        add_single_object(fields, octets)
        return Shape("avro single object", fields.types)
    if octets.startswith(_JAVA):
        return _plain("java")
    try:
        text = octets.decode("utf-8")
    except UnicodeDecodeError:
        return _plain("binary")
    return _text_shape(None, text, masks)


def _plain(name: str) -> Shape:
    """Return the shape of a body in which nothing has fields."""
    return Shape(name, {ROOT: {name}})
