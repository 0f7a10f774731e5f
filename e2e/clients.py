"""Clients in pods, and what their notes say: gaps, and what was confirmed but never came."""

import itertools
import json
from dataclasses import dataclass
from pathlib import Path

from kube import CommandError, Manifest, Namespace, wait_until

TRAFFIC = Path(__file__).with_name("traffic.py")
SCRIPTS = "traffic"
HOST_NAME_LABEL = "kubernetes.io/hostname"
DRAIN_SECONDS_MAX = 60.0
LOST_CONNECTION = "client connection lost"
RECONNECTING = (
    "?initialReconnectDelay=100&maxReconnectDelay=500&nested.connectionTimeout=1000"
    "&nested.wireFormat.maxInactivityDuration=10000"
)
"""What the Secret's URL has, too: see docs/operating/failover.md."""
AUTHORITY = "/client-secret/ca.crt"
"""Who vouches for the brokers' certificates, in the client Secret as pods see it."""


@dataclass(frozen=True, slots=True)
class Note:
    """One message and when it was confirmed or received."""

    number: int
    at: float


@dataclass(frozen=True, slots=True)
class Client:
    """One client in a pod of its own."""

    namespace: Namespace
    name: str

    def notes(self) -> list[Note]:
        """Return what it has noted up to now."""
        lines = self._printed().splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [Note(each["n"], each["at"]) for each in found if "n" in each]

    def _printed(self) -> str:
        """Return its log.

        Only by using it does the API server find out that its connection to the kubelet of a node
        that was cut off is dead; then it makes another.
        """
        try:
            return self.namespace.kubectl("logs", self.name)
        except CommandError as error:
            if LOST_CONNECTION not in str(error):
                raise
            return self.namespace.kubectl("logs", self.name)

    def run(self, program: str, *arguments: str) -> str:
        """Return what a Python *program* prints beside it."""
        return self.namespace.kubectl(
            "exec", self.name, "--", "python", "-c", program, *arguments
        ).strip()

    def numbers(self) -> set[int]:
        """Return the numbers of its messages."""
        return {note.number for note in self.notes()}

    def end(self) -> None:
        """End it where it is, and keep what it printed."""
        self.namespace.kubectl("exec", self.name, "--", "touch", "/tmp/end")
        wait_until(f"client {self.name} has ended", self._has_ended)

    def _has_ended(self) -> bool:
        pod = self.namespace.get("pod", self.name)
        return pod is not None and pod["status"]["phase"] in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Clients:
    """Clients of one Broker, with the credentials of its client Secret.

    They connect *through* the `service`, through the `uri` with all pods' names, or past both to
    a *host*, and run on *node* if one is given.
    """

    namespace: Namespace
    image: str
    broker: str
    node: str = ""
    through: str = "service"
    host: str = ""
    tls: bool = False
    """Whether they connect with TLS, and trust whom the client Secret trusts, nobody else."""

    def start(self, verb: str, queue: str) -> Client:
        """Start a client, and wait until it has noted its first message."""
        client = self.start_silent(verb, queue)
        wait_until(f"{client.name} has noted a message", client.notes)
        return client

    def start_silent(self, verb: str, queue: str) -> Client:
        """Start a client that may have nothing to note."""
        name = f"{verb}-{queue.lower()}"
        script = {"traffic.py": TRAFFIC.read_text("utf-8")}
        self.namespace.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": SCRIPTS},
                "data": script,
            },
            self._pod(name, [f"/{SCRIPTS}/traffic.py", verb, queue]),
        )
        self.namespace.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
        return Client(self.namespace, name)

    def _pod(self, name: str, command: list[str]) -> Manifest:
        secret = f"{self.broker}-client"

        def value(key: str) -> Manifest:
            return {"valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}

        by_service = f"failover:(tcp://$(HOST):$(PORT)){RECONNECTING}"
        if self.tls:
            trusting = f"&nested.ssl.caFile={AUTHORITY}"
            by_service = f"failover:(ssl://$(HOST):$(PORT)){RECONNECTING}{trusting}"
        url = "$(URI)" if self.through == "uri" else by_service
        environment = {
            "HOST": {"value": self.host} if self.host else value("host"),
            "PORT": value("port"),
            "URI": value("uri"),
            "LOCKKEEPER_URL": {"value": url},
            "LOCKKEEPER_USER": value("username"),
            "LOCKKEEPER_PASSWORD": value("password"),
        }
        container = {
            "name": "client",
            "image": self.image,
            "command": ["python", *command],
            "env": [{"name": key, **source} for key, source in environment.items()],
            "volumeMounts": [
                {"name": SCRIPTS, "mountPath": f"/{SCRIPTS}"},
                {"name": "secret", "mountPath": AUTHORITY.removesuffix("/ca.crt")},
            ],
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
        }
        spec: Manifest = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [
                {"name": SCRIPTS, "configMap": {"name": SCRIPTS}},
                {"name": "secret", "secret": {"secretName": secret}},
            ],
        }
        if self.node:
            spec["nodeSelector"] = {HOST_NAME_LABEL: self.node}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def gap(notes: list[Note], since: float) -> float:
    """Return the longest time without a message in seconds, of all that end after *since*."""
    times = sorted(note.at for note in notes)
    between = itertools.pairwise(times)
    return max((later - earlier for earlier, later in between if later >= since), default=0.0)


def assert_nothing_lost(sender: Client, receiver: Client) -> int:
    """Wait until all that the ended *sender* was confirmed has come; returns how many."""
    confirmed = sender.numbers()

    def lost() -> set[int]:
        return confirmed - receiver.numbers()

    try:
        wait_until("every confirmed message has come", lambda: not lost(), DRAIN_SECONDS_MAX)
    except AssertionError as error:
        missing = sorted(lost())
        raise AssertionError(f"{len(missing)} confirmed and lost: {missing[:20]}") from error
    return len(confirmed)
