"""Identity of a pod, as its environment says (`lockkeeper_operator` sets it)."""

from collections.abc import Mapping
from dataclasses import dataclass

POD_VARIABLE = "LOCKKEEPER_POD"
UID_VARIABLE = "LOCKKEEPER_POD_UID"
NAMESPACE_VARIABLE = "LOCKKEEPER_NAMESPACE"


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """The pod that a broker runs in; *uid* and *namespace* are empty where nothing names them."""

    name: str
    uid: str = ""
    namespace: str = ""

    @property
    def is_known_to_cluster(self) -> bool:
        """True if the API server can identify the pod by these fields."""
        return bool(self.uid and self.namespace)

    @property
    def holder(self) -> str:
        """Name of the pod as the holder of a Lease."""
        return f"{self.name}_{self.uid}"

    @property
    def ordinal(self) -> int | None:
        """The pod's number in its StatefulSet, None if it has none."""
        number = self.name.rpartition("-")[2]
        return int(number) if number.isdecimal() else None


def pod_identity(environment: Mapping[str, str]) -> PodIdentity | None:
    """Return the pod that *environment* names, None outside of pods."""
    name = environment.get(POD_VARIABLE, "")
    if not name:
        return None
    return PodIdentity(
        name, environment.get(UID_VARIABLE, ""), environment.get(NAMESPACE_VARIABLE, "")
    )
