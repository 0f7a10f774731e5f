"""Status of pods: their conditions, and trouble that keeps them from running."""

from lockkeeper_operator.kubernetes.manifests import Manifest

PENDING = "Pending"
"""Phase of a pod of which not all containers have run yet."""
UNSCHEDULABLE = "Unschedulable"
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
