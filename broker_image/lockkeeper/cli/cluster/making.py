"""Resources that commands make for a Broker: their names, and the operator that they are for."""

import secrets

from lockkeeper.cli.cluster.kubectl import Manifest
from lockkeeper_api.pod_names import CLASS_LABEL

RANDOM_BYTES = 3


def new_name(broker: str, characters_max: int) -> str:
    """Return a name that no other resource has; it begins with the Broker's."""
    end = f"-{secrets.token_hex(RANDOM_BYTES)}"
    return broker[: characters_max - len(end)].rstrip("-") + end


def labels_like(broker: Manifest) -> dict[str, str]:
    """Return the labels that leave a resource to the operator that looks after its Broker."""
    class_name = broker["metadata"].get("labels", {}).get(CLASS_LABEL)
    return {} if class_name is None else {CLASS_LABEL: class_name}
