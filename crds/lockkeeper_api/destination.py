"""The Destination resource: a queue, topic or stream that exists from the start."""

from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from lockkeeper_api.meta import (
    LABEL_PATTERN,
    ApiModel,
    ApiVersion,
    DeclaredKind,
    Metadata,
    ResourceName,
)
from lockkeeper_api.policy import DestinationPolicy
from lockkeeper_api.rules import rules
from lockkeeper_api.streams import Stream
from lockkeeper_api.wildcards import DestinationName

MOVED = "a Destination stays what and where it is: make another one"
MOVED_RULE = (
    "self.kind == oldSelf.kind && self.brokerRef.name == oldSelf.brokerRef.name && "
    "has(self.brokerRef.__namespace__) == has(oldSelf.brokerRef.__namespace__) && "
    "(!has(self.brokerRef.__namespace__) || "
    "self.brokerRef.__namespace__ == oldSelf.brokerRef.__namespace__) && "
    "has(self.name) == has(oldSelf.name) && (!has(self.name) || self.name == oldSelf.name)"
)
"""`namespace` is a reserved word of CEL, and is written so."""
POLICY_OF_STREAM = "policy is for queues and topics: a Stream has spec.stream instead"
POLICY_OF_STREAM_RULE = "self.kind != 'Stream' || !has(self.policy)"
STREAM_ALONE = "stream is for a Destination of kind Stream alone"
STREAM_ALONE_RULE = "self.kind == 'Stream' || !has(self.stream)"
PURGE_ANNOTATION = "lockkeeper.dev/purge"
"""Asks once for all messages of a Destination to be removed; confirmed by its full name, the one
that clients use, as the annotation's value."""


class BrokerReference(ApiModel):
    """A Broker in the same namespace, or in another one that allows it."""

    name: ResourceName
    """Name of the Broker."""
    namespace: str | None = Field(default=None, max_length=63, pattern=LABEL_PATTERN)
    """Namespace of the Broker, whose allowedDestinations must allow it; absent: this one."""


class DestinationSpec(ApiModel):
    """Settings of a destination."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (MOVED_RULE, MOVED),
            (POLICY_OF_STREAM_RULE, POLICY_OF_STREAM),
            (STREAM_ALONE_RULE, STREAM_ALONE),
        )
    )

    broker_ref: BrokerReference
    """The Broker that the destination lives on."""
    kind: DeclaredKind = "Queue"
    """Queue, Topic or Stream."""
    name: DestinationName | None = None
    """Name that clients use; absent: the name of the resource."""
    policy: DestinationPolicy | None = None
    """Policy of the destination and of its dead letters, instead of the Broker's entries; absent:
    as the Broker's entries say."""
    stream: Stream | None = None
    """Settings of a Stream; absent: the usual ones."""
    deletion_policy: Literal["Retain", "DeleteIfEmpty", "Delete"] = "Retain"
    """Cluster: treatment of the destination when the resource is deleted. DeleteIfEmpty: it stays
    while there are messages or consumers. Delete: its messages are deleted, too."""
    adoption: Literal["Allowed", "Refused"] = "Allowed"
    """Cluster: treatment of a destination that exists already. Refused: the resource is not
    accepted, and the destination stays unchanged."""

    @model_validator(mode="after")
    def _is_of_its_kind(self) -> "DestinationSpec":
        if self.kind == "Stream" and self.policy is not None:
            raise ValueError(POLICY_OF_STREAM)
        if self.kind != "Stream" and self.stream is not None:
            raise ValueError(STREAM_ALONE)
        return self


class Destination(ApiModel):
    """A queue, topic or stream that exists from the start."""

    api_version: ApiVersion
    """lockkeeper.dev/v1alpha1."""
    kind: Literal["Destination"]
    """Destination."""
    metadata: Metadata
    """Name, namespace and labels of the Destination."""
    spec: DestinationSpec
    """Settings of the destination."""

    @property
    def name(self) -> str:
        """The name that clients use."""
        return self.spec.name or self.metadata.name

    @property
    def broker_namespace(self) -> str | None:
        """Namespace of the Broker."""
        return self.spec.broker_ref.namespace or self.metadata.namespace
