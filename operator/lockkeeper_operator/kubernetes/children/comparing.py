"""Comparison of an object with its desired state, and the fields it has besides."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from lockkeeper_operator.kubernetes.quantities import quantity

Path: TypeAlias = tuple[str | int, ...]
"""Where something is in an object: keys of mappings, numbers of items."""

AMOUNTS = ("requests", "limits")
"""Keys of mappings whose values are quantities."""

POD_SPEC = ("spec", "template", "spec")
WHOLE: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "Certificate": (("spec", "dnsNames"),),
    "ConfigMap": (("data",),),
    "Ingress": (("spec", "rules"), ("spec", "tls")),
    "NetworkPolicy": (("spec",),),
    "PodDisruptionBudget": (("spec", "selector"),),
    "PodMonitor": (("spec", "selector"),),
    "Role": (("rules",),),
    "RoleBinding": (("subjects",), ("roleRef",)),
    "Service": (
        ("spec", "selector"), ("spec", "ports"), ("spec", "externalIPs"),
        ("spec", "loadBalancerSourceRanges"),
    ),
    "ServiceMonitor": (("spec", "selector"),),
    "TLSRoute": (("spec", "hostnames"),),
    "StatefulSet": (("spec", "selector"), ("spec", "volumeClaimTemplates"), POD_SPEC),
}  # fmt: skip
"""Parts of children, by their kind, in which nothing may be but what is wanted: who is let in, who
may do what, where clients are led, with which rights pods run."""

FILLED_IN = frozenset(
    {
        "apiGroup", "apiVersion", "appProtocol", "defaultMode", "dnsPolicy", "failureThreshold",
        "imagePullPolicy", "nodePort", "periodSeconds", "preemptionPolicy", "protocol",
        "restartPolicy", "schedulerName", "scheme", "serviceAccount", "successThreshold",
        "targetPort", "terminationGracePeriodSeconds", "terminationMessagePath",
        "terminationMessagePolicy", "timeoutSeconds", "volumeMode",
    }
)  # fmt: skip
"""What the API server writes into such parts where nobody says anything."""

IDENTITIES = ("mountPath", "name")
"""By which items of a list are told apart, if all have one and no two the same."""


def covers(present: Any, wanted: Any, amounts: bool = False) -> bool:
    """Return whether *present* has all that is *wanted*, and perhaps more.

    More is what the API server fills in, and what others own. Lists of items that have an identity
    are compared by it, other lists item by item. Values of *amounts* may be written differently.
    """
    if isinstance(wanted, dict):
        if present is None:
            return not wanted
        return isinstance(present, dict) and all(
            covers(present.get(key), value, key in AMOUNTS or amounts)
            for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return _list_covers(present or [], wanted)
    if amounts and quantity(wanted) is not None:
        return quantity(present) == quantity(wanted)
    return bool(present == wanted)


def as_made(present: Any, wanted: Any) -> Any:
    """Return what is *wanted* as it is at *present*: None for what is not there."""
    if isinstance(wanted, dict) and isinstance(present, dict):
        return {key: as_made(present.get(key), value) for key, value in wanted.items()}
    if isinstance(wanted, list) and isinstance(present, list):
        partners = zip(present, _partners(present, wanted), strict=True)
        return [as_made(item, partner) for item, partner in partners if partner is not None]
    return present


def added(present: Mapping[str, Any], wanted: Mapping[str, Any]) -> frozenset[Path]:
    """Return where *present*, which covers what is *wanted*, has more than it may have."""
    found: set[Path] = set()
    for path in WHOLE.get(str(wanted.get("kind", "")), ()):
        found |= set(_added(_at(present, path), _at(wanted, path), path))
    return frozenset(found)


def _added(present: Any, wanted: Any, at: Path) -> Iterator[Path]:
    if wanted is None:
        if present:
            yield at
    elif isinstance(wanted, dict) and isinstance(present, dict):
        for key, value in present.items():
            if key in wanted:
                yield from _added(value, wanted[key], (*at, key))
            elif value and key not in FILLED_IN:
                yield (*at, key)
    elif isinstance(wanted, list) and isinstance(present, list):
        partners = _partners(present, wanted)
        for number, item in enumerate(present):
            if partners[number] is None:
                yield (*at, number)
            else:
                yield from _added(item, partners[number], (*at, number))


def _partners(present: list[Any], wanted: list[Any]) -> list[Any]:
    """Return for each item what it is to be, None where it is not to be there."""
    key = _identity(wanted)
    if key is None:
        return [*wanted, *[None] * len(present)][: len(present)]
    named = {item[key]: item for item in wanted}
    return [named.get(item.get(key)) if isinstance(item, dict) else None for item in present]


def _list_covers(present: Any, wanted: list[Any]) -> bool:
    if not isinstance(present, list):
        return False
    key = _identity(wanted)
    if key is not None:
        named = {item.get(key): item for item in present if isinstance(item, dict)}
        return all(covers(named.get(item[key]), item) for item in wanted)
    return len(present) == len(wanted) and all(map(covers, present, wanted))


def _identity(items: list[Any]) -> str | None:
    for key in IDENTITIES:
        if items and all(isinstance(item, dict) and key in item for item in items):
            values = [item[key] for item in items]
            if len({str(value) for value in values}) == len(values):
                return key
    return None


def _at(manifest: Mapping[str, Any], path: Path) -> Any:
    value: Any = manifest
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
