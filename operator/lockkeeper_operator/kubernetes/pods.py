"""Status of pods: their conditions, and trouble that keeps them from running."""

from lockkeeper_operator.kubernetes.manifests import Manifest

PENDING = "Pending"
"""Phase of a pod of which not all containers have run yet."""
UNSCHEDULABLE = "Unschedulable"
READY_TO_START = "PodReadyToStartContainers"
"""Condition of a pod whose sandbox is there, which is made once its volumes are mounted."""
HOPELESS = frozenset(
    {
        "CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "InvalidImageName",
        "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError",
        "RunContainerError",
    }
)  # fmt: skip
"""Why containers wait, where waiting longer alone does not help."""


def condition_of(pod: Manifest, kind: str) -> str:
    """Return the status of a pod's condition: True, False or Unknown."""
    conditions = pod.get("status", {}).get("conditions", ())
    found = (str(each["status"]) for each in conditions if each["type"] == kind)
    return next(found, "Unknown")


def has_volumes(pod: Manifest) -> bool:
    """Return whether the volumes of a placed pod are mounted; images may be fetched meanwhile."""
    waits = pod.get("status", {}).get("phase") == PENDING
    return not waits or condition_of(pod, READY_TO_START) == "True"


def trouble_of(pod: Manifest) -> str:
    """Return why a pod will not run without help, empty if nothing says so."""
    status = pod.get("status", {})
    if status.get("phase") == "Failed":
        return status.get("reason") or "Failed"
    if condition_of(pod, "PodScheduled") == "False":
        return UNSCHEDULABLE
    first = status.get("initContainerStatuses", ()) if status.get("phase") == PENDING else ()
    for container in (*first, *status.get("containerStatuses", ())):
        reason = container.get("state", {}).get("waiting", {}).get("reason", "")
        if reason in HOPELESS:
            return str(reason)
    return ""
