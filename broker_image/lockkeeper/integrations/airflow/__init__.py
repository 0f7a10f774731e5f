"""The provider of Apache Airflow 3: assets that are updated by messages, and a connection's hook.

Comes in: Airflow's triggers, connections and URIs. Never here: DAGs, and what a message means.
"""

from typing import Any

SCHEME = "lockkeeper+openwire"


def get_provider_info() -> dict[str, Any]:
    """Return what Airflow's ProvidersManager asks at the entry point `apache_airflow_provider`."""
    room = "lockkeeper.integrations.airflow"
    return {
        "package-name": "lockkeeper-mq",
        "name": "Lockkeeper",
        "description": "Messages of Lockkeeper and ActiveMQ as events of assets.",
        "queues": [f"{room}.provider.LockkeeperMessageQueueProvider"],
        "triggers": [
            {"integration-name": "Lockkeeper", "python-modules": [f"{room}.trigger"]},
        ],
        "connection-types": [
            {"connection-type": "lockkeeper", "hook-class-name": f"{room}.hook.LockkeeperHook"},
        ],
    }
