"""The CustomResourceDefinitions of the resources."""

from typing import Any

from lockkeeper_api.analysis.status import JournalAnalysisStatus
from lockkeeper_api.broker import Broker
from lockkeeper_api.broker_network import BrokerNetwork, BrokerNetworkStatus
from lockkeeper_api.destination import Destination
from lockkeeper_api.journal_analysis import JournalAnalysis
from lockkeeper_api.journal_backup import JournalBackup, JournalBackupStatus
from lockkeeper_api.meta import GROUP, VERSION, ApiModel
from lockkeeper_api.schema import flat_schema, structural_schema
from lockkeeper_api.status import BrokerStatus, DestinationStatus

READY = '.status.conditions[?(@.type=="Ready")].status'
WHY = '.status.conditions[?(@.type=="Ready")].reason'
AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def _column(name: str, path: str, kind: str = "string") -> dict[str, Any]:
    """Return a column of `kubectl get`."""
    return {"name": name, "type": kind, "jsonPath": path}


def broker_definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition of Broker."""
    columns = [
        _column("Replicas", ".spec.replicas", "integer"),
        _column("Master", ".status.master"),
        _column("Ready", READY),
        {**_column("Why", WHY), "priority": 1},
        {**_column("Version", ".status.version"), "priority": 1},
        AGE,
    ]
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    return _definition(Broker, BrokerStatus, "lkb", columns, scale)


def destination_definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition of Destination."""
    columns = [
        _column("Broker", ".spec.brokerRef.name"),
        _column("Kind", ".spec.kind"),
        _column("Destination", ".status.name"),
        _column("Depth", ".status.depth", "integer"),
        _column("Consumers", ".status.consumers", "integer"),
        _column("Ready", READY),
        {**_column("Lag", ".status.stream.lagMessages", "integer"), "priority": 1},
        {**_column("Why", WHY), "priority": 1},
        AGE,
    ]
    return _definition(Destination, DestinationStatus, "lkd", columns)


def broker_network_definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition of BrokerNetwork."""
    columns = [
        _column("Topology", ".spec.topology"),
        _column("Brokers", ".status.brokers", "integer"),
        _column("Bridges", ".status.bridges.expected", "integer"),
        _column("Connected", ".status.bridges.connected", "integer"),
        _column("Ready", READY),
        {**_column("Why", WHY), "priority": 1},
        AGE,
    ]
    return _definition(BrokerNetwork, BrokerNetworkStatus, "lkn", columns)


def journal_analysis_definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition of JournalAnalysis."""
    columns = [
        {**_column("Broker", ".spec.source.broker"), "priority": 1},
        _column("Engine", ".status.engine"),
        _column("State", ".status.state"),
        _column("Progress", ".status.progressText"),
        {**_column("Schedule", ".spec.schedule.cron"), "priority": 1},
        {**_column("Last success", ".status.lastSuccessfulTime", "date"), "priority": 1},
        _column("Result", ".status.result"),
        AGE,
    ]
    plural = "journalanalyses"
    return _definition(JournalAnalysis, JournalAnalysisStatus, "lkj", columns, plural=plural)


def journal_backup_definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition of JournalBackup."""
    columns = [
        _column("Broker", ".spec.broker"),
        _column("State", ".status.state"),
        {**_column("Schedule", ".spec.schedule.cron"), "priority": 1},
        _column("Taken", ".status.result.takenAt", "date"),
        _column("Pending", ".status.result.pending", "integer"),
        {**_column("Place", ".status.result.place"), "priority": 1},
        AGE,
    ]
    return _definition(JournalBackup, JournalBackupStatus, "lkbk", columns)


def all_definitions() -> dict[str, dict[str, Any]]:
    """Return the definition of every resource by its kind."""
    found = (
        broker_definition(),
        destination_definition(),
        broker_network_definition(),
        journal_analysis_definition(),
        journal_backup_definition(),
    )
    return {each["spec"]["names"]["kind"]: each for each in found}


def _definition(
    model: type[ApiModel],
    status: type[ApiModel],
    short: str,
    columns: list[dict[str, Any]],
    scale: dict[str, Any] | None = None,
    plural: str = "",
) -> dict[str, Any]:
    """Return the definition of one namespaced kind with a status, and *scale* if it has one."""
    plural = plural or f"{model.__name__.lower()}s"
    kind = model.__name__
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [short],
                "categories": ["lockkeeper"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _schema(model, status)},
                    "subresources": {"status": {}, **({"scale": scale} if scale else {})},
                    "additionalPrinterColumns": columns,
                }
            ],
        },
    }


def _schema(model: type[ApiModel], status: type[ApiModel]) -> dict[str, Any]:
    """Return the structural schema of a whole resource."""
    schema = flat_schema(model)
    required = {"required": ["spec"]} if "spec" in schema["required"] else {}
    return {
        "type": "object",
        "description": schema["description"],
        **required,
        **{key: schema[key] for key in ("x-kubernetes-validations",) if key in schema},
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural_schema(schema["properties"]["spec"]),
            "status": structural_schema(flat_schema(status)),
        },
    }
