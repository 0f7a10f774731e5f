"""Objects as an API server holds them, and what the operator makes of them."""

from typing import Any

from lockkeeper_operator.brokers.desired.children import children
from lockkeeper_operator.brokers.desired.subject import (
    Certificate,
    Installation,
    Subject,
    subject_of,
)
from lockkeeper_operator.kubernetes.manifests import Manifest

MONITORS = frozenset({"PodMonitor", "ServiceMonitor"})
SURROUNDINGS = Installation(image="example/lockkeeper:1", optional_kinds=MONITORS)


def broker_resource(annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    return {
        "apiVersion": "lockkeeper.dev/v1alpha1",
        "kind": "Broker",
        "metadata": {
            "name": "departures",
            "namespace": "airport",
            "uid": "uid-of-departures",
            "generation": 3,
            "annotations": annotations or {},
        },
        "spec": spec,
    }


def subject(
    installation: Installation = SURROUNDINGS,
    annotations: dict[str, str] | None = None,
    listener_certificates: dict[str, Certificate] | None = None,
    **spec: Any,
) -> Subject:
    return subject_of(
        broker_resource(annotations, **spec),
        installation,
        passwords={"client": "secret", "jfk": "runway"},
        password_hashes={"client": "hash-of-client", "jfk": "hash-of-jfk"},
        admin_token="token",
        admin_certificate=Certificate("certificate", "key", "authority"),
        listener_certificates=listener_certificates,
    )


def by_kind(found: Subject) -> dict[str, list[Manifest]]:
    kinds: dict[str, list[Manifest]] = {}
    for child in children(found):
        kinds.setdefault(child["kind"], []).append(child)
    return kinds


def child(found: Subject, kind: str, name: str | None = None) -> Manifest:
    (only,) = (
        manifest
        for manifest in by_kind(found).get(kind, [])
        if name in (None, manifest["metadata"]["name"])
    )
    return only


def pod_spec(found: Subject) -> Manifest:
    spec: Manifest = child(found, "StatefulSet")["spec"]["template"]["spec"]
    return spec
