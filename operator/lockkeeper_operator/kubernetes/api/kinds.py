"""The kinds of objects that the operator deals with, and where the API server has them."""

from dataclasses import dataclass

from lockkeeper_api.meta import API_VERSION


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: its API, its name in manifests and in paths."""

    api_version: str
    name: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API's group, empty for the oldest."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The API's version."""
        return self.api_version.rpartition("/")[2]

    def path(self, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """Return the path of one object, or of all in a namespace, or of all (None)."""
        root = "/apis" if "/" in self.api_version else "/api"
        parts = [root, self.api_version]
        if namespace is not None and self.namespaced:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)


BROKER = Kind(API_VERSION, "Broker", "brokers")
DESTINATION = Kind(API_VERSION, "Destination", "destinations")
BROKER_NETWORK = Kind(API_VERSION, "BrokerNetwork", "brokernetworks")
JOURNAL_ANALYSIS = Kind(API_VERSION, "JournalAnalysis", "journalanalyses")
JOURNAL_BACKUP = Kind(API_VERSION, "JournalBackup", "journalbackups")
POD = Kind("v1", "Pod", "pods")
NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False)
NODE = Kind("v1", "Node", "nodes", namespaced=False)
EVENT = Kind("v1", "Event", "events")
SECRET = Kind("v1", "Secret", "secrets")
CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
VOLUME_SNAPSHOT = Kind("snapshot.storage.k8s.io/v1", "VolumeSnapshot", "volumesnapshots")
"""Where drivers of volumes make snapshots."""
JOB = Kind("batch/v1", "Job", "jobs")
JOBS = (Kind("batch/v1", "CronJob", "cronjobs"), JOB)
STATEFUL_SET = Kind("apps/v1", "StatefulSet", "statefulsets")

CHILDREN = (
    Kind("v1", "ServiceAccount", "serviceaccounts"),
    Kind("rbac.authorization.k8s.io/v1", "Role", "roles"),
    Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
    LEASE,
    SECRET,
    Kind("v1", "ConfigMap", "configmaps"),
    CLAIM,
    Kind("v1", "Service", "services"),
    Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    Kind("networking.k8s.io/v1", "Ingress", "ingresses"),
    Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    STATEFUL_SET,
    JOURNAL_ANALYSIS,
)
"""Kinds of children that every cluster knows."""

MONITORING_API = "monitoring.coreos.com/v1"
MONITORS = (
    Kind(MONITORING_API, "PodMonitor", "podmonitors"),
    Kind(MONITORING_API, "ServiceMonitor", "servicemonitors"),
)
"""Kinds of children where Prometheus' operator is installed."""
GATEWAY_API = "gateway.networking.k8s.io/v1"
TLS_ROUTE = Kind(GATEWAY_API, "TLSRoute", "tlsroutes")
"""Of the Gateway API, 1.5 or newer."""
CERTIFICATE = Kind("cert-manager.io/v1", "Certificate", "certificates")
"""Of cert-manager."""
OPTIONAL_KINDS = (*MONITORS, TLS_ROUTE, CERTIFICATE)
"""Kinds of children that a cluster need not know."""

BY_NAME = {
    kind.name: kind
    for kind in (
        *(BROKER, DESTINATION, BROKER_NETWORK, JOURNAL_BACKUP, POD, NAMESPACE, EVENT, *JOBS),
        *CHILDREN,
        *OPTIONAL_KINDS,
    )
}
