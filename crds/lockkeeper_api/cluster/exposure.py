"""Exposure of a listener in a cluster: TLS and a Service."""

from ipaddress import ip_network
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from lockkeeper_api.changes import OPERATOR
from lockkeeper_api.meta import ApiModel
from lockkeeper_api.raw import ObjectName, Strings
from lockkeeper_api.rules import rules

NO_NODE_PORT = "nodePort needs type NodePort or LoadBalancer"
_NODE_PORT_RULE = "!has(self.nodePort) || self.type != 'ClusterIP'"

ONLY_OF_LOAD_BALANCERS = "loadBalancerClass and sourceRanges need type LoadBalancer"
_LOAD_BALANCER_RULE = (
    "self.type == 'LoadBalancer' || !has(self.loadBalancerClass) && "
    "(!has(self.sourceRanges) || size(self.sourceRanges) == 0)"
)
ONLY_FROM_OUTSIDE = "externalTrafficPolicy needs type NodePort or LoadBalancer"
_OUTSIDE_RULE = "!has(self.externalTrafficPolicy) || self.type != 'ClusterIP'"
FAMILIES = "two different ipFamilies need another ipFamilyPolicy than SingleStack"
_FAMILIES_RULE = (
    "!has(self.ipFamilies) || size(self.ipFamilies) < 2 || "
    "(self.ipFamilies[0] != self.ipFamilies[1] && "
    "(!has(self.ipFamilyPolicy) || self.ipFamilyPolicy != 'SingleStack'))"
)


def _network(text: str) -> str:
    """Return *text* if it is a network; ValueError otherwise."""
    ip_network(text, strict=False)
    return text


Network = Annotated[
    str,
    Field(max_length=43, pattern=r"^[0-9a-fA-F.:]+/[0-9]{1,3}$"),
    AfterValidator(_network),
]
Family = Literal["IPv4", "IPv6"]


ONE_CERTIFICATE = "expected at most one of secretName, issuerRef"
_ONE_CERTIFICATE_RULE = "!has(self.secretName) || !has(self.issuerRef)"
WHOSE_CLIENTS = (
    "clientCertificates needs secretName or issuerRef: the operator vouches for no clients"
)
_WHOSE_CLIENTS_RULE = (
    "self.clientCertificates == 'Ignored' || has(self.secretName) || has(self.issuerRef)"
)


class IssuerRef(ApiModel):
    """The issuer of certificates: one of cert-manager, or of another API that works like it."""

    name: ObjectName
    """Cluster: name of the issuer."""
    kind: Annotated[str, Field(min_length=1, max_length=63)] = "Issuer"
    """Cluster: Issuer, in the Broker's namespace, or ClusterIssuer."""
    group: Annotated[str, Field(min_length=1, max_length=253)] = "cert-manager.io"
    """Cluster: group of the issuer's API."""


class Tls(ApiModel):
    """Encryption of a listener. Without secretName the Secret is BROKER-LISTENER-tls."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (_ONE_CERTIFICATE_RULE, ONE_CERTIFICATE), (_WHOSE_CLIENTS_RULE, WHOSE_CLIENTS)
        )
    )

    secret_name: ObjectName | None = None
    """Cluster: Secret of type kubernetes.io/tls: tls.crt, tls.key, and ca.crt where clients must
    show certificates; it is read again when it changes. Absent: the operator sees to one."""
    issuer_ref: Annotated[IssuerRef | None, OPERATOR] = None
    """Cluster: cert-manager's issuer of the certificate; absent, or where cert-manager is not
    installed: the operator's own authority, whose ca.crt is in the Secret, too."""
    client_certificates: Literal["Ignored", "Wanted", "Required"] = "Ignored"
    """Cluster: demand for clients' certificates (ActiveMQ's wantClientAuth, needClientAuth)."""

    @model_validator(mode="after")
    def _has_one_source(self) -> "Tls":
        if self.secret_name is not None and self.issuer_ref is not None:
            raise ValueError(ONE_CERTIFICATE)
        own = self.secret_name is None and self.issuer_ref is None
        if own and self.client_certificates != "Ignored":
            raise ValueError(WHOSE_CLIENTS)
        return self


ONE_WAY = "expected exactly one of gateway, ingressClassName"
_ONE_WAY_RULE = "has(self.gateway) != has(self.ingressClassName)"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
HostName = Annotated[str, Field(max_length=253, pattern=rf"^({_LABEL}\.)+{_LABEL}$")]


class Gateway(ApiModel):
    """A Gateway of the Gateway API, with a listener for TLS in mode Passthrough."""

    name: ObjectName
    """Cluster: name of the Gateway."""
    namespace: ObjectName | None = None
    """Cluster: namespace of the Gateway; absent: the Broker's."""
    section_name: ObjectName | None = None
    """Cluster: listener of the Gateway; absent: every one that lets the route in."""


class Route(ApiModel):
    """A way in by host name: connections are told apart by TLS' server name, and not decrypted."""

    model_config = ConfigDict(json_schema_extra=rules((_ONE_WAY_RULE, ONE_WAY)))

    host: HostName
    """Cluster: name that clients connect to; it must stand in the listener's certificate."""
    gateway: Gateway | None = None
    """Cluster: makes a TLSRoute, which needs the Gateway API 1.5 or newer."""
    ingress_class_name: ObjectName | None = None
    """Cluster: makes an Ingress of that class, with TLS pass-through."""
    annotations: Strings = Field(default={})
    """Cluster: annotations for the Gateway's or Ingress' controller."""

    @model_validator(mode="after")
    def _is_one(self) -> "Route":
        if (self.gateway is None) == (self.ingress_class_name is None):
            raise ValueError(ONE_WAY)
        return self


class ListenerService(ApiModel):
    """The Service that leads to a listener of the master."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (_NODE_PORT_RULE, NO_NODE_PORT),
            (_LOAD_BALANCER_RULE, ONLY_OF_LOAD_BALANCERS),
            (_OUTSIDE_RULE, ONLY_FROM_OUTSIDE),
            (_FAMILIES_RULE, FAMILIES),
        )
    )

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    """Cluster: type of the Service, as in Kubernetes."""
    node_port: int | None = Field(default=None, ge=1, le=65535)
    """Cluster: port on every node; absent: Kubernetes chooses one."""
    per_pod: bool = False
    """Cluster: besides, a Service BROKER-LISTENER-N of the same type for each pod; its address for
    external-dns is the host of the N-th of `advertisedUrls`."""
    annotations: Strings = Field(default={})
    """Cluster: annotations for load balancers and DNS."""
    load_balancer_class: str | None = Field(default=None, min_length=1, max_length=316)
    """Cluster: class of the load balancer; absent: the cluster's default."""
    source_ranges: list[Network] = Field(default=[], max_length=64)
    """Cluster: networks whose clients the load balancer lets in; empty: all."""
    external_traffic_policy: Literal["Cluster", "Local"] | None = None
    """Cluster: Local lets the broker see clients' own addresses; absent: Kubernetes' default."""
    ip_family_policy: Literal["SingleStack", "PreferDualStack", "RequireDualStack"] | None = None
    """Cluster: use of one or both IP families; absent: Kubernetes' default."""
    ip_families: list[Family] = Field(default=[], max_length=2)
    """Cluster: IP families, the primary one first, which cannot be changed; empty: the
    cluster's."""

    @model_validator(mode="after")
    def _fits_its_type(self) -> "ListenerService":
        balanced = self.load_balancer_class is not None or self.source_ranges
        families = self.ip_families
        if self.node_port is not None and self.type == "ClusterIP":
            raise ValueError(NO_NODE_PORT)
        if balanced and self.type != "LoadBalancer":
            raise ValueError(ONLY_OF_LOAD_BALANCERS)
        if self.external_traffic_policy is not None and self.type == "ClusterIP":
            raise ValueError(ONLY_FROM_OUTSIDE)
        single = self.ip_family_policy == "SingleStack" or len(set(families)) == 1
        if len(families) == 2 and single:
            raise ValueError(FAMILIES)
        return self
