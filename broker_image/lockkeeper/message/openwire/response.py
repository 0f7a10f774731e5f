"""Answers to commands; the correlation id is the command's number."""

from lockkeeper.message.openwire.connection import BaseCommand
from lockkeeper.message.openwire.structure import (
    Array,
    Failure,
    Int32,
    Nested,
    Structure,
    structure,
)


@structure(30)
class Response(BaseCommand):
    """Done."""

    correlation_id: Int32 = 0


@structure(31)
class ExceptionResponse(Response):
    """Refused, with the Java exception that the client throws."""

    exception: Failure = None


@structure(32)
class DataResponse(Response):
    """Done, with one structure as the result."""

    data: Nested[Structure] = None


@structure(33)
class DataArrayResponse(Response):
    """Done, with structures as the result: the transactions to recover."""

    data: Array[Structure] = None


@structure(34)
class IntegerResponse(Response):
    """Done, with a number as the result: XA's answer to prepare."""

    result: Int32 = 0
