"""What a person decides about a Broker: promote, fence, pause, hibernate."""

import time
from collections.abc import Callable

from lockkeeper.cli.cluster.kubectl import Kubectl, Manifest
from lockkeeper.cli.cluster.objects import BROKERS, master_of, pods_of, role_of
from lockkeeper.cli.errors import CommandError, misused
from lockkeeper.cli.output import say
from lockkeeper_api.pod_names import FENCED_ANNOTATION

LOOK_SECONDS = 0.3
STANDBY = "standby"


def promote(kubectl: Kubectl, name: str, successor: str | None, seconds_max: float) -> None:
    """Let the master stop cleanly, so that a standby takes over; waits until one has.

    Raises CommandError when no standby is ready, or none took over in time.
    """
    pods = pods_of(kubectl, name)
    master = str(master_of(pods, name)["metadata"]["name"])
    standbys = [_name(pod) for pod in pods if role_of(pod) == STANDBY]
    if successor == master:
        say(f"{master} is the master already")
        return
    if not standbys:
        raise CommandError(f"{name} has no standby that could take over from {master}")
    if successor is not None and standbys != [successor]:
        raise misused(_cannot_choose(successor, standbys))
    began = time.monotonic()
    kubectl.run("delete", "pod", master, "--wait=false")
    say(f"{master} is stopping; one of {', '.join(standbys)} takes over")
    new = _wait_for(lambda: _master_besides(kubectl, name, master), seconds_max)
    if new is None:
        raise CommandError(
            f"nobody took over within {seconds_max:.0f} s: see `kubectl lockkeeper status {name}`"
        )
    say(f"{new} is the master, after {time.monotonic() - began:.1f} s")


def set_field(kubectl: Kubectl, name: str, field: str, wanted: bool) -> None:
    """Set a switch of the Broker's spec."""
    kubectl.patch(BROKERS, name, {"spec": {field: wanted}})


def set_fence(kubectl: Kubectl, name: str, pod: str, fenced: bool) -> None:
    """Put *pod* behind the fence, or let it out. Raises CommandError if it is not the Broker's."""
    if pod not in map(_name, pods_of(kubectl, name)):
        raise misused(f"{pod} is no pod of {name}")
    metadata = kubectl.get(BROKERS, name)["metadata"]
    present = metadata.get("annotations", {}).get(FENCED_ANNOTATION, "")
    names = {each for each in present.split(",") if each} - {pod}
    wanted = ",".join(sorted(names | {pod} if fenced else names)) or None
    kubectl.patch(BROKERS, name, {"metadata": {"annotations": {FENCED_ANNOTATION: wanted}}})


def _name(pod: Manifest) -> str:
    return str(pod["metadata"]["name"])


def _cannot_choose(successor: str, standbys: list[str]) -> str:
    if successor not in standbys:
        return f"{successor} is no standby; there is {', '.join(standbys)}"
    return f"of {len(standbys)} standbys the first to get the lock takes over: name none"


def _master_besides(kubectl: Kubectl, name: str, old: str) -> str | None:
    """Return the master if it is not the one with the name *old*, which is being deleted."""
    for pod in pods_of(kubectl, name):
        if role_of(pod) == "master" and _name(pod) != old:
            return _name(pod)
    return None


def _wait_for(find: Callable[[], str | None], seconds_max: float) -> str | None:
    """Return what *find* finds, or None if that is nothing for so long."""
    deadline = time.monotonic() + seconds_max
    while time.monotonic() < deadline:
        found = find()
        if found is not None:
            return found
        time.sleep(LOOK_SECONDS)
    return None
