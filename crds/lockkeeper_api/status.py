"""Status of a resource, written by the operator, as kubectl and other tools read it."""

from typing import Annotated, Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel

Generation = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
Count = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""A time as RFC 3339 has it: `2027-03-01T12:00:00Z`."""
ConditionStatus = Literal["True", "False", "Unknown"]


class Condition(ApiModel):
    """A condition of the resource, with its time and reason (metav1.Condition)."""

    type: str = Field(max_length=316)
    """Type of the condition."""
    status: ConditionStatus
    """True, False or Unknown."""
    reason: str = Field(min_length=1, max_length=1024, pattern="^[A-Za-z]([A-Za-z0-9]*)$")
    """Reason in one word, for tools."""
    message: str = Field(max_length=32768)
    """Reason in a sentence, for people."""
    last_transition_time: Time
    """Time of the last change of `status`."""
    observed_generation: Generation | None = None
    """Generation of the resource that this condition is about."""


Conditions = Annotated[
    list[Condition],
    Field(
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        }
    ),
]


class Failover(ApiModel):
    """One change of the master."""

    time: Time
    """Time at which the new master began."""
    cause: str = Field(max_length=1024)
    """Cause of the change, as far as it is known."""


class Binding(ApiModel):
    """Secret for applications (a provisioned service of servicebinding.io)."""

    name: str = Field(max_length=253)
    """Name of the Secret with address and credentials."""


class BrokerStatus(ApiModel):
    """State of the resource, as the operator found it."""

    observed_generation: Generation | None = None
    """Generation of the resource that this status is about."""
    conditions: Conditions = Field(default=[])
    """Ready, and its parts: MasterElected, StandbysReady, StorageBound, ConfigurationApplied,
    Upgrading, Paused. Tools that wait read Reconciling and Stalled."""
    replicas: Count | None = None
    """Number of pods."""
    selector: str | None = Field(default=None, max_length=1024)
    """Label selector of the pods, for autoscalers."""
    master: str | None = Field(default=None, max_length=253)
    """Name of the master's pod."""
    epoch: Count | None = None
    """Number of the master's term, as the journal has it."""
    last_failover: Failover | None = None
    """The last change of the master."""
    configuration: str | None = Field(default=None, max_length=64)
    """Hash of the configuration that the master reports."""
    revision: str | None = Field(default=None, max_length=64)
    """Revision that pods are updated to; each change that needs a restart makes a new one."""
    version: str | None = Field(default=None, max_length=64)
    """Release of Lockkeeper that the master runs."""
    binding: Binding | None = None
    """The Secret for applications."""


class GroupStatus(ApiModel):
    """Progress of a consumer group in a stream."""

    name: str = Field(max_length=255)
    """Name of the group."""
    members: Count = 0
    """Number of its members that the broker knows."""
    lag_messages: Count = 0
    """Number of messages that it has not consumed, rounded down to a power of ten."""
    lag_time: str | None = Field(default=None, max_length=32)
    """Age of the oldest of them, rounded down, such as 5m; nothing when all are consumed."""


class StreamStatus(ApiModel):
    """Contents of a stream, and the progress of its groups."""

    partitions: Count | None = None
    """Number of partitions."""
    bytes: Count | None = None
    """Bytes of the messages that retention has kept."""
    lag_messages: Count | None = None
    """Largest number of messages that a group has not consumed, rounded down to a power of ten."""
    groups: list[GroupStatus] = Field(default=[], max_length=16)
    """Groups that have most to consume, at most 16."""


class DestinationStatus(ApiModel):
    """State of the resource, as the operator found it."""

    observed_generation: Generation | None = None
    """Generation of the resource that this status is about."""
    conditions: Conditions = Field(default=[])
    """Ready, Accepted, InSync."""
    name: str | None = Field(default=None, max_length=1024)
    """Name that clients use."""
    depth: Count | None = None
    """Number of messages in the destination."""
    consumers: Count | None = None
    """Number of consumers."""
    enqueued: Count | None = None
    """Number of messages that came since the master began."""
    dequeued: Count | None = None
    """Number of messages that ended since the master began."""
    oldest_message_age: str | None = Field(default=None, max_length=32)
    """Time that the oldest message has waited, such as 1h30m; of a stream, that it is kept."""
    stream: StreamStatus | None = None
    """State of a stream, for kind Stream."""
