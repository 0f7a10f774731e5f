"""Parts of every resource: the model's rules, and the metadata of Kubernetes."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

GROUP = "lockkeeper.dev"
VERSION = "v1alpha1"

ApiVersion = Literal["lockkeeper.dev/v1alpha1"]
API_VERSION: ApiVersion = "lockkeeper.dev/v1alpha1"
DestinationKind = Literal["Queue", "Topic"]
DeclaredKind = Literal["Queue", "Topic", "Stream"]

LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
LABEL_PATTERN = rf"^{LABEL}$"
SUBDOMAIN_PATTERN = rf"^{LABEL}(\.{LABEL})*$"

ResourceName = Annotated[str, Field(min_length=1, max_length=253, pattern=SUBDOMAIN_PATTERN)]
"""A lower-case DNS name (RFC 1123)."""


class ApiModel(BaseModel):
    """A part of a resource: camelCase on the wire, nothing unknown, nothing converted."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
    )


class Metadata(ApiModel):
    """Name, namespace and labels of a resource."""

    name: ResourceName
    """Name of the resource, unique for its kind in its namespace."""
    namespace: str | None = Field(default=None, max_length=63, pattern=LABEL_PATTERN)
    """Namespace in the cluster; local processes have none."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels to select the resource by."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Notes for people and tools."""
