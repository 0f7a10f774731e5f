"""Commands of `lockkeeper` itself, for a Broker in a cluster: through forwarded ports."""

import base64
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lockkeeper.cli.cluster.kubectl import Kubectl, KubectlError, Manifest
from lockkeeper.cli.cluster.objects import BROKERS, CONTAINER, master_of, pods_of
from lockkeeper.cli.errors import CommandError
from lockkeeper_api.pod_names import ADMIN_TOKEN_FILE

FORWARDED = ("browse", "destinations", "dlq", "receive", "send", "transactions", "why")
"""Commands that are carried out on the master: they need it alone, and know nothing of pods."""
ADMIN_PORT_NAME = "admin"
ADMIN_TOKEN_VARIABLE = "LOCKKEEPER_ADMIN_TOKEN"
_OPENED = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) -> (\d+)")


def run_forwarded(kubectl: Kubectl, name: str, command: Sequence[str]) -> int:
    """Run `lockkeeper` with *command* against the master; returns its exit code."""
    broker = kubectl.get(BROKERS, name)
    pod = master_of(pods_of(kubectl, name), name)
    listener = _listener(broker)
    admin = admin_port(pod)
    secure = "tls" in listener
    with forwarded(kubectl, pod["metadata"]["name"], (listener["port"], admin)) as ports:
        scheme = "ssl" if secure else "tcp"
        environment = {
            **os.environ,
            **_credentials(kubectl, name),
            "LOCKKEEPER_URL": f"{scheme}://127.0.0.1:{ports[listener['port']]}",
            "LOCKKEEPER_ADMIN": f"http://127.0.0.1:{ports[admin]}",
        }
        words = [sys.executable, "-m", "lockkeeper.cli.main", *command]
        return subprocess.run(words, env=environment, check=False).returncode


def _listener(broker: Manifest) -> Manifest:
    """Return the listener for OpenWire, one without TLS if there is."""
    listeners: list[Manifest] = broker["spec"]["listeners"]
    found = [each for each in listeners if each.get("protocol", "openwire") == "openwire"]
    if not found:
        raise CommandError("the Broker has no listener for OpenWire")
    plain = [each for each in found if "tls" not in each]
    return (plain or found)[0]


def admin_port(pod: Manifest) -> int:
    """Return the port of the admin endpoint, as the pod declares it."""
    for container in pod["spec"]["containers"]:
        for port in container.get("ports", ()):
            if container["name"] == CONTAINER and port.get("name") == ADMIN_PORT_NAME:
                return int(port["containerPort"])
    raise CommandError(f"{pod['metadata']['name']} has no port called {ADMIN_PORT_NAME}")


def _credentials(kubectl: Kubectl, name: str) -> dict[str, str]:
    """Return what the Secrets of the Broker say, as the environment that `lockkeeper` reads.

    What the person has set stays. Somebody who may not read the Secrets goes without.
    """
    found: dict[str, str] = {}
    client = _secret(kubectl, f"{name}-client")
    wanted = {"LOCKKEEPER_USER": "username", "LOCKKEEPER_PASSWORD": "password"}
    if not any(variable in os.environ for variable in wanted):
        found |= {each: client[key] for each, key in wanted.items() if key in client}
    token = admin_token(kubectl, name)
    return {**found, ADMIN_TOKEN_VARIABLE: token} if token else found


def admin_token(kubectl: Kubectl, name: str) -> str:
    """Return what opens the admin endpoints of a Broker, empty for somebody who may not know it."""
    given = os.environ.get(ADMIN_TOKEN_VARIABLE)
    return given or _secret(kubectl, f"{name}-admin").get(ADMIN_TOKEN_FILE, "")


def _secret(kubectl: Kubectl, name: str) -> dict[str, str]:
    try:
        secret = kubectl.find("secrets", name)
    except KubectlError:
        return {}
    data = {} if secret is None else secret.get("data", {})
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


@contextmanager
def forwarded(kubectl: Kubectl, pod: str, ports: Sequence[int]) -> Iterator[dict[int, int]]:
    """Give local ports that lead to *ports* of the pod, for as long as the block runs."""
    wanted = [f":{port}" for port in sorted(set(ports))]
    command = kubectl.command("port-forward", f"pod/{pod}", "--address=127.0.0.1", *wanted)
    forwarder = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # Ctrl-C is for the command in front; the ports stay until it has ended.
        start_new_session=True,
    )  # fmt: skip
    try:
        yield _opened(forwarder, len(wanted))
    finally:
        forwarder.send_signal(signal.SIGTERM)
        forwarder.communicate()


def _opened(forwarder: "subprocess.Popen[str]", count: int) -> dict[int, int]:
    """Return local ports by the pod's. Raises KubectlError when they cannot be opened."""
    found: dict[int, int] = {}
    assert forwarder.stdout is not None and forwarder.stderr is not None
    for line in forwarder.stdout:
        opened = _OPENED.match(line)
        if opened:
            found[int(opened[2])] = int(opened[1])
        if len(found) == count:
            return found
    raise KubectlError(f"cannot reach the pod: {forwarder.stderr.read().strip()}")
