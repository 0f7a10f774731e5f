"""`kubectl lockkeeper promote`: the master stops cleanly, and a standby takes over.

Whoever gets the lock first is the next master. Where one standby is chosen, the others are fenced
meanwhile, so that it is the only one to ask for the lock.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from lockkeeper.cli.admin import AdminError
from lockkeeper.cli.cluster.asking import status_of
from lockkeeper.cli.cluster.kubectl import Kubectl, KubectlError, Manifest
from lockkeeper.cli.cluster.objects import MASTER, master_of, name_of, pods_of, role_of
from lockkeeper.cli.cluster.operations import fences, put_fences
from lockkeeper.cli.errors import CommandError, misused
from lockkeeper.cli.output import say
from lockkeeper.server.roles import FENCED, STANDBY

LOOK_SECONDS = 0.3


def promote(kubectl: Kubectl, name: str, successor: str | None, seconds_max: float) -> None:
    """Let the master hand over to *successor*, or to any standby; waits until one has taken over.

    Raises CommandError when there is no standby, *successor* is not proven able, or nobody took
    over in time.
    """
    pods = pods_of(kubectl, name)
    master = name_of(master_of(pods, name))
    standbys = [pod for pod in pods if role_of(pod) == STANDBY]
    if successor == master:
        say(f"{master} is the master already")
        return
    if not standbys:
        raise CommandError(f"{name} has no standby that could take over from {master}")
    if successor is None:
        names = ", ".join(map(name_of, standbys))
        _hand_over(kubectl, name, master, f"one of {names} takes over", seconds_max)
        return
    _check_successor(kubectl, name, successor, standbys)
    others = [pod for pod in standbys if name_of(pod) != successor]
    with _aside(kubectl, name, others, seconds_max):
        new = _hand_over(kubectl, name, master, f"{successor} takes over", seconds_max)
    if new != successor:
        raise CommandError(f"{new} took over, not {successor}")


def _check_successor(
    kubectl: Kubectl, name: str, successor: str, standbys: Sequence[Manifest]
) -> None:
    """Raise CommandError, unless the chosen standby is proven able to take over."""
    named = [pod for pod in standbys if name_of(pod) == successor]
    if not named:
        there = ", ".join(map(name_of, standbys))
        raise misused(f"{successor} is no standby; there is {there}")
    reason = _why_not(kubectl, name, named[0])
    if reason:
        raise CommandError(f"{successor} is not proven able to take over: {reason}")


def _why_not(kubectl: Kubectl, name: str, pod: Manifest) -> str:
    """Return why nothing proves that a pod's broker can be the master; empty if it can."""
    if "deletionTimestamp" in pod["metadata"]:
        return "it is being deleted"
    if not _is_ready(pod):
        return "it is not ready"
    try:
        said = status_of(kubectl, name, pod)
    except (KubectlError, AdminError) as error:
        return f"it does not answer ({error})"
    if said["role"] != STANDBY:
        return f"it is {said['role']}"
    return "" if said.get("takesOver") is True else "it has not yet found the journal's lock held"


@contextmanager
def _aside(
    kubectl: Kubectl, name: str, others: Sequence[Manifest], seconds_max: float
) -> Iterator[None]:
    """Keep the *others* from taking over for as long as the block runs."""
    if not others:
        yield
        return
    before = fences(kubectl, name)
    names = frozenset(map(name_of, others)) - before
    try:
        if names:
            say(f"{', '.join(sorted(names))}: fenced meanwhile")
            put_fences(kubectl, name, before | names)
        _wait_for_fences(kubectl, name, others, seconds_max)
        yield
    finally:
        if names:
            put_fences(kubectl, name, fences(kubectl, name) - names)


def _wait_for_fences(
    kubectl: Kubectl, name: str, others: Sequence[Manifest], seconds_max: float
) -> None:
    """Wait until each of the *others* says that it is fenced. Raises CommandError."""
    for pod in others:
        if _wait_for(partial(_is_fenced, kubectl, name, pod), seconds_max) is None:
            raise CommandError(
                f"{name_of(pod)} was not fenced within {seconds_max:.0f} s, so that nothing was "
                "done: is the operator there, and the Broker not paused?"
            )


def _is_fenced(kubectl: Kubectl, name: str, pod: Manifest) -> str | None:
    """Return that its broker says so, else None; one that is not ready waits for its fence."""
    try:
        role = status_of(kubectl, name, pod)["role"]
    except (KubectlError, AdminError):
        return None if _is_ready(pod) else FENCED
    return FENCED if role == FENCED else None


def _hand_over(
    kubectl: Kubectl, name: str, master: str, expectation: str, seconds_max: float
) -> str:
    """Stop the master, and return who is the master then. Raises CommandError for nobody."""
    began = time.monotonic()
    kubectl.run("delete", "pod", master, "--wait=false")
    say(f"{master} is stopping; {expectation}")
    new = _wait_for(lambda: _master_besides(kubectl, name, master), seconds_max)
    if new is None:
        raise CommandError(
            f"nobody took over within {seconds_max:.0f} s: see `kubectl lockkeeper status {name}`"
        )
    say(f"{new} is the master, after {time.monotonic() - began:.1f} s")
    return new


def _is_ready(pod: Manifest) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _master_besides(kubectl: Kubectl, name: str, old: str) -> str | None:
    """Return the master if it is not the one with the name *old*, which is being deleted."""
    for pod in pods_of(kubectl, name):
        if role_of(pod) == MASTER and name_of(pod) != old:
            return name_of(pod)
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
