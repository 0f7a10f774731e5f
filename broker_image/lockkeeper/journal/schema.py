"""Schema of records: protobuf fields and attributes in one table, for reading and for writing.

Fields are listed in number order, the order in which ActiveMQ writes them.
"""

from enum import Enum
from typing import Any, NamedTuple

from lockkeeper.journal import records
from lockkeeper.journal.protobuf import LENGTH, VARINT


class FieldType(Enum):
    """Type of a field's value."""

    TEXT = "text"
    BYTES = "bytes"
    NUMBER = "number"
    FLAG = "flag"
    DESTINATION = "destination"
    TRANSACTION = "transaction"
    ADD = "add"

    @property
    def wire_type(self) -> int:
        """The protobuf wire type of such a field."""
        return VARINT if self in (FieldType.NUMBER, FieldType.FLAG) else LENGTH


class Field(NamedTuple):
    """One field of a command: its protobuf number, its attribute, its type."""

    number: int
    name: str
    type: FieldType
    required: bool = True


class Schema(NamedTuple):
    """One command: its type byte, its value class, its fields."""

    command: int
    value_class: type[Any]
    fields: tuple[Field, ...]


_TRANSACTION = Field(1, "transaction", FieldType.TRANSACTION)
_OPEN_TRANSACTION = Field(1, "transaction", FieldType.TRANSACTION, required=False)
_SCHEDULER = Field(1, "scheduler", FieldType.TEXT)
_JOB = Field(2, "job_id", FieldType.TEXT)

SCHEMAS = (
    Schema(0, records.Trace, (Field(1, "message", FieldType.TEXT),)),
    Schema(
        1,
        records.AddMessage,
        (
            _OPEN_TRANSACTION,
            Field(2, "destination", FieldType.DESTINATION),
            Field(3, "message_id", FieldType.TEXT),
            Field(4, "message", FieldType.BYTES),
            Field(5, "priority", FieldType.NUMBER, required=False),
            Field(6, "priority_supported", FieldType.FLAG, required=False),
        ),
    ),
    Schema(
        2,
        records.RemoveMessage,
        (
            _OPEN_TRANSACTION,
            Field(2, "destination", FieldType.DESTINATION),
            Field(3, "message_id", FieldType.TEXT),
            Field(4, "ack", FieldType.BYTES, required=False),
            Field(5, "subscription_key", FieldType.TEXT, required=False),
        ),
    ),
    Schema(3, records.Prepare, (_TRANSACTION,)),
    Schema(4, records.Commit, (_TRANSACTION,)),
    Schema(5, records.Rollback, (_TRANSACTION,)),
    Schema(6, records.RemoveDestination, (Field(1, "destination", FieldType.DESTINATION),)),
    Schema(
        7,
        records.Subscription,
        (
            Field(1, "destination", FieldType.DESTINATION),
            Field(2, "subscription_key", FieldType.TEXT),
            Field(3, "retroactive", FieldType.FLAG, required=False),
            Field(4, "info", FieldType.BYTES, required=False),
        ),
    ),
    Schema(8, records.ProducerAudit, (Field(1, "audit", FieldType.BYTES),)),
    Schema(9, records.AckFileMap, (Field(1, "ack_file_map", FieldType.BYTES),)),
    Schema(10, records.UpdateMessage, (Field(1, "add", FieldType.ADD),)),
    Schema(
        11,
        records.AddScheduledJob,
        (
            _SCHEDULER,
            _JOB,
            Field(3, "start_time", FieldType.NUMBER),
            Field(4, "cron_entry", FieldType.TEXT),
            Field(5, "delay", FieldType.NUMBER),
            Field(6, "period", FieldType.NUMBER),
            Field(7, "repeat", FieldType.NUMBER),
            Field(8, "payload", FieldType.BYTES),
            Field(9, "next_execution_time", FieldType.NUMBER),
        ),
    ),
    Schema(
        12,
        records.RescheduleJob,
        (
            _SCHEDULER,
            _JOB,
            Field(3, "execution_time", FieldType.NUMBER),
            Field(4, "next_execution_time", FieldType.NUMBER),
            Field(5, "rescheduled_count", FieldType.NUMBER),
        ),
    ),
    Schema(
        13,
        records.RemoveScheduledJob,
        (_SCHEDULER, _JOB, Field(3, "next_execution_time", FieldType.NUMBER)),
    ),
    Schema(
        14,
        records.RemoveScheduledJobs,
        (
            _SCHEDULER,
            Field(2, "start_time", FieldType.NUMBER),
            Field(3, "end_time", FieldType.NUMBER),
        ),
    ),
    Schema(15, records.DestroyScheduler, (_SCHEDULER,)),
    Schema(
        16,
        records.RewrittenDataFile,
        (
            Field(1, "source_data_file_id", FieldType.NUMBER),
            Field(2, "rewrite_type", FieldType.NUMBER, required=False),
            Field(3, "skip_if_source_exists", FieldType.FLAG, required=False),
        ),
    ),
)

BY_COMMAND = {schema.command: schema for schema in SCHEMAS}
BY_CLASS = {schema.value_class: schema for schema in SCHEMAS}
