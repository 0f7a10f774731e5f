"""Structures of transactions."""

from enum import IntEnum

from lockkeeper.message.ids import TransactionId
from lockkeeper.message.openwire.connection import BaseCommand
from lockkeeper.message.openwire.identities import ConnectionId
from lockkeeper.message.openwire.structure import Cached, Int8, structure


class TransactionOperation(IntEnum):
    """TransactionInfo.type."""

    BEGIN = 0
    PREPARE = 1
    COMMIT_ONE_PHASE = 2
    COMMIT_TWO_PHASE = 3
    ROLLBACK = 4
    RECOVER = 5
    FORGET = 6
    END = 7


@structure(7)
class TransactionInfo(BaseCommand):
    """A client begins, prepares or ends a transaction."""

    connection_id: Cached[ConnectionId] = None
    transaction_id: Cached[TransactionId] = None
    type: Int8 = TransactionOperation.BEGIN
