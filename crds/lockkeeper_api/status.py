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
    """One thing that is so or not, since when and why (as metav1.Condition)."""

    type: str = Field(max_length=316)
    """What it is about."""
    status: ConditionStatus
    """Whether it is so."""
    reason: str = Field(min_length=1, max_length=1024, pattern="^[A-Za-z]([A-Za-z0-9]*)$")
    """Why, as one word for tools."""
    message: str = Field(max_length=32768)
    """Why, for people."""
    last_transition_time: Time
    """Since when."""
    observed_generation: Generation | None = None
    """The generation of the resource that was looked at."""


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
    """When the new one began."""
    cause: str = Field(max_length=1024)
    """Why, as far as it is known."""


class Binding(ApiModel):
    """What applications bind to (servicebinding.io's provisioned service)."""

    name: str = Field(max_length=253)
    """Name of the Secret with address and credentials."""


class BrokerStatus(ApiModel):
    """What the operator found and did."""

    observed_generation: Generation | None = None
    """The generation that all else is about."""
    conditions: Conditions = Field(default=[])
    """Ready, and what it is made of: MasterElected, StandbysReady, StorageBound,
    ConfigurationApplied, Upgrading, Paused; Reconciling and Stalled for tools that wait."""
    replicas: Count | None = None
    """Pods that there are."""
    selector: str | None = Field(default=None, max_length=1024)
    """Which pods these are, for autoscalers."""
    master: str | None = Field(default=None, max_length=253)
    """The master's pod."""
    epoch: Count | None = None
    """Number of its term, as the journal has it."""
    last_failover: Failover | None = None
    """The last change of the master."""
    configuration: str | None = Field(default=None, max_length=64)
    """Hash of the configuration that the master reports."""
    revision: str | None = Field(default=None, max_length=64)
    """What pods are brought to; a change that needs a restart is a new one."""
    version: str | None = Field(default=None, max_length=64)
    """Release that the master runs."""
    binding: Binding | None = None
    """The Secret for applications."""


class DestinationStatus(ApiModel):
    """What the operator found and did."""

    observed_generation: Generation | None = None
    """The generation that all else is about."""
    conditions: Conditions = Field(default=[])
    """Ready, Accepted, InSync."""
    name: str | None = Field(default=None, max_length=1024)
    """Name that clients use."""
    depth: Count | None = None
    """Messages there."""
    consumers: Count | None = None
    """Consumers now."""
    enqueued: Count | None = None
    """Messages that came since the master began."""
    dequeued: Count | None = None
    """Messages that ended since the master began."""
    oldest_message_age: str | None = Field(default=None, max_length=32)
    """How long the oldest message has waited, such as 1h30m."""
