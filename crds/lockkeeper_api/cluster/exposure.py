"""How clients reach a listener in a cluster: TLS and a Service."""

from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.raw import ObjectName, Strings
from lockkeeper_api.rules import rules

NO_NODE_PORT = "nodePort needs type NodePort or LoadBalancer"
_NODE_PORT_RULE = "!has(self.nodePort) || self.type != 'ClusterIP'"


class Tls(ApiModel):
    """Encryption of a listener."""

    secret_name: ObjectName
    """Cluster: Secret of type kubernetes.io/tls: tls.crt, tls.key, and ca.crt where clients must
    show certificates; it is read again when it changes."""
    client_certificates: Literal["Ignored", "Wanted", "Required"] = "Ignored"
    """Cluster: whether clients show certificates (ActiveMQ's wantClientAuth, needClientAuth)."""


class ListenerService(ApiModel):
    """The Service that leads to a listener of the master."""

    model_config = ConfigDict(json_schema_extra=rules((_NODE_PORT_RULE, NO_NODE_PORT)))

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    """Cluster: how far it reaches."""
    node_port: int | None = Field(default=None, ge=1, le=65535)
    """Cluster: port on every node; absent: Kubernetes chooses."""
    annotations: Strings = Field(default={})
    """Cluster: what load balancers and DNS want to know."""

    @model_validator(mode="after")
    def _has_a_node_port_only_on_nodes(self) -> "ListenerService":
        if self.node_port is not None and self.type == "ClusterIP":
            raise ValueError(NO_NODE_PORT)
        return self
