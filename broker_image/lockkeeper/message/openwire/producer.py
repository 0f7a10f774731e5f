"""Structures of producers."""

from typing import Annotated

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import ProducerId
from lockkeeper.message.openwire.connection import BaseCommand
from lockkeeper.message.openwire.identities import BrokerId
from lockkeeper.message.openwire.structure import (
    Array,
    Cached,
    Flag,
    Int32,
    Nested,
    Since,
    structure,
)


@structure(6)
class ProducerInfo(BaseCommand):
    """A client opens a producer; no destination means that each message names its own."""

    producer_id: Cached[ProducerId] = None
    destination: Cached[Destination] = None
    broker_path: Array[BrokerId] = None
    dispatch_async: Annotated[Flag, Since(2)] = False
    window_size: Annotated[Int32, Since(3)] = 0


@structure(19)
class ProducerAck(BaseCommand):
    """The broker has taken *size* bytes of a producer's window."""

    producer_id: Nested[ProducerId] = None
    size: Int32 = 0
