"""Kinds of children of an analysis."""

from lockkeeper_operator.analyses.engine import APACHE_API, KUBEFLOW_API
from lockkeeper_operator.kubernetes.api.kinds import CLAIM, JOBS, Kind

RBAC_API = "rbac.authorization.k8s.io/v1"
EVERYWHERE = (
    Kind("v1", "ServiceAccount", "serviceaccounts"),
    Kind(RBAC_API, "Role", "roles"),
    Kind(RBAC_API, "RoleBinding", "rolebindings"),
    Kind("v1", "ConfigMap", "configmaps"),
    Kind("v1", "Service", "services"),
    CLAIM,
    Kind("apps/v1", "Deployment", "deployments"),
    *JOBS,
)
"""Kinds that every cluster knows."""
OF_SPARK = (
    Kind(KUBEFLOW_API, "ScheduledSparkApplication", "scheduledsparkapplications"),
    Kind(KUBEFLOW_API, "SparkApplication", "sparkapplications"),
    Kind(APACHE_API, "SparkApplication", "sparkapplications"),
)
"""Kinds where one of Spark's operators is installed."""
