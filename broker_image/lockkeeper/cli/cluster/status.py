"""`kubectl lockkeeper status`: a Broker as a tree: pods, lock, journal, destinations."""

import json
import sys
import time
from collections.abc import Iterator

import typer
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from lockkeeper.cli.cluster.kubectl import Kubectl, Manifest
from lockkeeper.cli.cluster.objects import (
    MASTER,
    BrokerObjects,
    broker_objects,
    condition,
    member_of,
    role_of,
    seconds_since,
)
from lockkeeper.cli.errors import FAILED
from lockkeeper.cli.output import counted, duration_text

DESTINATIONS_SHOWN_MAX = 50
PLAIN_WIDTH = 1_000
TRANSIENT = {"Upgrading": "True", "Paused": "True", "ConfigurationApplied": "False"}
"""Conditions that are worth a line when they have this status."""


def show_status(kubectl: Kubectl, name: str, as_json: bool) -> None:
    """Print the Broker; exit code 1 when it does not serve."""
    found = broker_objects(kubectl, name)
    if as_json:
        print(json.dumps(_data(found), indent=2))
    else:
        width = None if sys.stdout.isatty() else PLAIN_WIDTH
        Console(highlight=False, width=width).print(tree(found, time.time()), soft_wrap=True)
    if condition(found.broker, "Ready")["status"] != "True":
        raise typer.Exit(FAILED)


def tree(found: BrokerObjects, now: float) -> Tree:
    """Return the tree; *now* is in seconds since 1970."""
    root = Tree(Text.assemble((found.name, "bold"), "  ", _readiness(found.broker)))
    for line in _notes(found.broker):
        root.add(line)
    pods = root.add(Text("pods"))
    for pod in found.pods:
        pods.add(_pod(pod, now))
    root.add(_lock(found, now))
    root.add(_journal(found))
    for network in found.networks:
        root.add(_network(network, found.broker))
    _add_destinations(root, found)
    return root


def _readiness(broker: Manifest) -> Text:
    ready = condition(broker, "Ready")
    style = "green" if ready["status"] == "True" else "red"
    text = f"{ready['reason']}: {ready['message']}" if ready["message"] else ready["reason"]
    return Text(text, style)


def _notes(broker: Manifest) -> Iterator[Text]:
    """Yield what is going on, and the last change of the master."""
    for kind, status in TRANSIENT.items():
        found = condition(broker, kind)
        if found["status"] == status:
            yield Text(f"{kind}: {found['message'] or found['reason']}", "yellow")
    last = broker.get("status", {}).get("lastFailover")
    if last:
        yield Text(f"last failover {last['time']}: {last['cause']}")


def _pod(pod: Manifest, now: float) -> Text:
    status = pod.get("status", {})
    role = role_of(pod)
    parts = [role or "no role yet", pod["spec"].get("nodeName", "no node yet"), _state(pod)]
    if "startTime" in status:
        parts.append(duration_text(seconds_since(status["startTime"], now)))
    restarts = sum(each["restartCount"] for each in status.get("containerStatuses", ()))
    if restarts:
        parts.append(counted(restarts, "restart"))
    style = "green" if role == MASTER else ""
    return Text.assemble((pod["metadata"]["name"], style), "  ", "  ".join(parts))


def _state(pod: Manifest) -> str:
    """Return how a pod is, in a word."""
    if "deletionTimestamp" in pod["metadata"]:
        return "stopping"
    for container in pod.get("status", {}).get("containerStatuses", ()):
        reason = container.get("state", {}).get("waiting", {}).get("reason")
        if reason:
            return str(reason)
    if condition(pod, "Ready")["status"] == "True":
        return "ready"
    return str(pod.get("status", {}).get("phase", "Unknown"))


def _lock(found: BrokerObjects, now: float) -> Text:
    if found.lease is None:
        return Text("lock  the file's alone, no Lease")
    spec = found.lease.get("spec", {})
    holder = str(spec.get("holderIdentity") or "")
    if not holder:
        return Text("lock  Lease, held by nobody", "yellow")
    text = f"lock  Lease, held by {holder.partition('_')[0]}"
    if "leaseTransitions" in spec:
        text += f", epoch {spec['leaseTransitions']}"
    if "renewTime" in spec:
        text += f", renewed {duration_text(seconds_since(spec['renewTime'], now))} ago"
    return Text(text)


def _journal(found: BrokerObjects) -> Text:
    if found.claim is None:
        return Text("journal  no claim seen", "yellow")
    claim = found.claim
    size = claim.get("status", {}).get("capacity", {}).get("storage", "no size yet")
    phase = claim.get("status", {}).get("phase", "Unknown")
    text = f"journal  claim {claim['metadata']['name']}, {size}, {phase}"
    return Text(text, "" if phase == "Bound" else "yellow")


def _network(network: Manifest, broker: Manifest) -> Text:
    """Return how the bridges are that a Broker dials in a network, and what nobody takes."""
    member = member_of(network, broker) or {}
    bridges = member.get("bridges", {})
    expected, connected = bridges.get("expected", 0), bridges.get("connected", 0)
    parts = [
        f"network {network['metadata']['name']}",
        f"{connected} of {counted(expected, 'bridge')} connected",
    ]
    if member.get("stranded"):
        parts.append(f"at least {counted(member['stranded'], 'message')} stranded")
    return Text("  ".join(parts), "" if connected == expected else "yellow")


def _add_destinations(root: Tree, found: BrokerObjects) -> None:
    count = len(found.destinations)
    branch = root.add(Text(f"destinations  {counted(count, 'resource')}"))
    for each in found.destinations[:DESTINATIONS_SHOWN_MAX]:
        branch.add(_destination(each))
    if count > DESTINATIONS_SHOWN_MAX:
        more = count - DESTINATIONS_SHOWN_MAX
        branch.add(Text(f"{more:,} more: kubectl get destinations", "dim"))


def _destination(resource: Manifest) -> Text:
    status, ready = resource.get("status", {}), condition(resource, "Ready")
    name = status.get("name") or resource["spec"].get("name") or resource["metadata"]["name"]
    parts = [f"{resource['spec'].get('kind', 'Queue')} {name}", ready["reason"]]
    if "depth" in status:
        parts.append(counted(status["depth"], "message"))
        parts.append(counted(status.get("consumers", 0), "consumer"))
    return Text("  ".join(parts), "" if ready["status"] == "True" else "yellow")


def _data(found: BrokerObjects) -> Manifest:
    """Return the objects, for scripts."""
    return {
        "broker": found.broker,
        "pods": list(found.pods),
        "lease": found.lease,
        "claim": found.claim,
        "destinations": list(found.destinations),
        "networks": list(found.networks),
    }
