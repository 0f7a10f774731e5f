"""Service without an address of its own: by its name executors find the driver."""

from lockkeeper_operator.analyses.desired.metadata import metadata, selector
from lockkeeper_operator.analyses.names import BLOCK_MANAGER_PORT, DRIVER, DRIVER_PORT
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: AnalysisSubject) -> Manifest | None:
    """Return the Service, or None for engines that make one themselves or need none.

    A driver that ends is not in it any more, so that of two runs in a row only one is found.
    """
    if subject.engine != "native":
        return None
    ports = {"driver-rpc": DRIVER_PORT, "block-manager": BLOCK_MANAGER_PORT}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(subject, subject.driver_service),
        "spec": {
            "clusterIP": "None",
            "selector": selector(subject, DRIVER),
            "ports": [
                {"name": name, "port": port, "targetPort": port} for name, port in ports.items()
            ],
        },
    }
