"""The CustomResourceDefinitions of the resources."""

from typing import Any

from lockkeeper_api.broker import Broker
from lockkeeper_api.destination import Destination
from lockkeeper_api.meta import GROUP, VERSION, ApiModel
from lockkeeper_api.schema import flat_schema, structural_schema

READY = '.status.conditions[?(@.type=="Ready")].status'
AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def _column(name: str, path: str, kind: str = "string") -> dict[str, Any]:
    """Return a column of `kubectl get`."""
    return {"name": name, "type": kind, "jsonPath": path}


def broker_definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition of Broker."""
    columns = [
        _column("Replicas", ".spec.replicas", "integer"),
        _column("Ready", READY),
        AGE,
    ]
    return _definition(Broker, "brokers", "lkb", columns)


def destination_definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition of Destination."""
    columns = [
        _column("Broker", ".spec.brokerRef.name"),
        _column("Kind", ".spec.kind"),
        _column("Destination", ".spec.name"),
        _column("Ready", READY),
        AGE,
    ]
    return _definition(Destination, "destinations", "lkd", columns)


def _definition(
    model: type[ApiModel], plural: str, short: str, columns: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the definition of one namespaced kind with a status subresource."""
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
                    "schema": {"openAPIV3Schema": _schema(model)},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": columns,
                }
            ],
        },
    }


def _schema(model: type[ApiModel]) -> dict[str, Any]:
    """Return the structural schema of a whole resource."""
    schema = flat_schema(model)
    required = {"required": ["spec"]} if "spec" in schema["required"] else {}
    return {
        "type": "object",
        "description": schema["description"],
        **required,
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural_schema(schema["properties"]["spec"]),
            "status": _status(),
        },
    }


def _status() -> dict[str, Any]:
    """Return the schema of a status: the generation it is about, and conditions."""
    text = {"type": "string"}
    condition = {
        "type": "object",
        "required": ["type", "status", "lastTransitionTime", "reason", "message"],
        "properties": {
            "type": {**text, "maxLength": 316},
            "status": {**text, "enum": ["True", "False", "Unknown"]},
            "reason": {**text, "minLength": 1, "maxLength": 1024},
            "message": {**text, "maxLength": 32768},
            "lastTransitionTime": {**text, "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        },
    }
    return {
        "type": "object",
        "description": "What the operator found and did.",
        "properties": {
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            "conditions": {
                "type": "array",
                "items": condition,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        },
    }
