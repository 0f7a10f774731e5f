"""The Lease and the label against a real API server, with the rights that the operator gives."""

import json
import re
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "server"), str(TESTS / "interop")]

import wire  # noqa: E402
from control_plane import ControlPlane  # noqa: E402
from pods import Pod, wait_until  # noqa: E402
from ports import free_port  # noqa: E402

from lockkeeper.message.destination import queue  # noqa: E402
from lockkeeper_api import BrokerSpec  # noqa: E402
from lockkeeper_operator.brokers.desired import role  # noqa: E402
from lockkeeper_operator.brokers.desired.subject import Installation, Subject  # noqa: E402

pytestmark = pytest.mark.crash

LABEL = "lockkeeper.dev/role"
SPEC = """\
  access: {anonymous: true}
  locker:
    acquireInterval: 100ms
    lease: {duration: 4s, renewDeadline: 2500ms, retryPeriod: 200ms}
"""
DEADLINE, DURATION = 2.5, 4.0


class Proxy:
    """Passes connections on to the API server, until it is cut: then nothing goes through."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._forwards = threading.Event()
        self._forwards.set()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._forwards.clear()

    def mend(self) -> None:
        self._forwards.set()

    def close(self) -> None:
        self.mend()
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target)) as server:
            other = {client: server, server: client}
            while True:
                readable, _, _ = select.select([client, server], [], [])
                self._forwards.wait()
                for each in readable:
                    try:
                        data = each.recv(65536)
                        if not data:
                            return
                        other[each].sendall(data)
                    except OSError:
                        return


@pytest.fixture
def proxy(control_plane: ControlPlane) -> Iterator[Proxy]:
    proxy = Proxy(control_plane.port)
    yield proxy
    proxy.close()


class Cluster:
    """A namespace with the pods, the Lease and the Role of a Broker called orders."""

    def __init__(self, plane: ControlPlane, namespace: str, home: Path) -> None:
        self.plane, self.namespace, self.home = plane, namespace, home
        self.account = home / "account"
        self.account.mkdir()
        (self.account / "ca.crt").write_bytes(plane.authority.read_bytes())
        self._apply(*self._objects())
        token = plane.kubectl("-n", namespace, "create", "token", "orders")
        (self.account / "token").write_text(token)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        text = self.plane.kubectl("-n", self.namespace, "get", kind, name, "-o", "json")
        found: dict[str, Any] = json.loads(text)
        return found

    def label(self, number: int) -> str | None:
        labels = self.get("pod", f"orders-{number}")["metadata"].get("labels", {})
        found: str | None = labels.get(LABEL)
        return found

    def lease(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.get("lease", "orders").get("spec", {})
        return spec

    def _apply(self, *objects: dict[str, Any]) -> None:
        text = "\n---\n".join(map(json.dumps, objects))
        self.plane.kubectl("-n", self.namespace, "apply", "-f", "-", text=text)

    def _objects(self) -> list[dict[str, Any]]:
        subject = Subject(
            "orders", self.namespace, "uid", BrokerSpec(replicas=2), Installation("image")
        )
        rights = role.build(subject)
        del rights["metadata"]["ownerReferences"]
        account = {"kind": "ServiceAccount", "name": "orders", "namespace": self.namespace}
        containers = [{"name": "broker", "image": "none"}]
        return [
            _object("v1", "ServiceAccount", "orders"),
            rights,
            _object(
                "rbac.authorization.k8s.io/v1",
                "RoleBinding",
                "orders",
                roleRef={
                    "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "orders",
                },
                subjects=[account],
            ),
            _object("coordination.k8s.io/v1", "Lease", "orders"),
            *(
                _object("v1", "Pod", f"orders-{number}", spec={"containers": containers})
                for number in range(2)
            ),
        ]  # fmt: skip


def _object(version: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more}


@pytest.fixture
def cluster(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Cluster:
    return Cluster(control_plane, namespace, tmp_path)


@pytest.fixture
def start_pod(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[..., Pod]]:
    started: list[Pod] = []
    port = free_port()

    def start(number: int, url: str = cluster.plane.url) -> Pod:
        name = f"orders-{number}"
        pod = Pod(
            name,
            tmp_path / name,
            tmp_path / "data",
            api=url,
            port=port,
            spec=SPEC,
            uid=cluster.get("pod", name)["metadata"]["uid"],
            account=cluster.account,
            namespace=cluster.namespace,
        )
        started.append(pod)
        return pod

    yield start
    for pod in started:
        pod.kill()


StartPod = Callable[..., Pod]


def test_a_switch_over(cluster: Cluster, start_pod: StartPod) -> None:
    first = start_pod(0).wait_for("master")
    second = start_pod(1).wait_for("standby")
    wait_until(lambda: (cluster.label(0), cluster.label(1)) == ("master", "standby"))
    held = cluster.lease()
    assert held["holderIdentity"] == f"orders-0_{first.uid}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}\.\d{6}Z", held["renewTime"])
    wait_until(lambda: second.status()["takesOver"])
    assert first.stop() == 0
    assert cluster.label(0) == "standby"
    second.wait_for("master")
    wait_until(lambda: cluster.label(1) == "master")
    assert cluster.lease()["leaseTransitions"] == second.status()["epoch"] == 2


def test_a_master_cut_off_from_the_api_server_stops_before_the_other_begins(
    cluster: Cluster, start_pod: StartPod, proxy: Proxy
) -> None:
    first = start_pod(0, f"https://127.0.0.1:{proxy.port}").wait_for("master")
    second = start_pod(1).wait_for("standby")
    with wire.Wire(first.port) as connection:
        producer = connection.producer()
        connection.request(wire.bytes_message(producer, 1, queue("Q"), b"1"))
        proxy.cut()
        began = time.monotonic()
        acknowledged = 1
        with pytest.raises((OSError, EOFError)):
            while True:
                number = acknowledged + 1
                message = wire.bytes_message(producer, number, queue("Q"), b"%d" % number)
                connection.request(message)
                acknowledged = number
        stopped = time.monotonic() - began
    assert DEADLINE - 0.4 < stopped < DURATION
    assert first.process.wait(10) == 1
    second.wait_for("master")
    assert time.monotonic() - began > stopped
    assert cluster.lease()["holderIdentity"] == f"orders-1_{second.uid}"
    with wire.Wire(second.port) as connection:
        found = [message.content for message in connection.browse(queue("Q"))]
    assert found[:acknowledged] == [b"%d" % number for number in range(1, acknowledged + 1)]


def test_a_restart_of_the_api_server_shorter_than_the_deadline_ends_no_master(
    cluster: Cluster, start_pod: StartPod, proxy: Proxy
) -> None:
    pod = start_pod(0, f"https://127.0.0.1:{proxy.port}").wait_for("master")
    for _ in range(3):
        proxy.cut()
        time.sleep(DEADLINE * 0.4)
        proxy.mend()
        time.sleep(0.5)
    assert pod.status()["role"] == "master"
    assert cluster.lease()["leaseTransitions"] == 1


def test_a_pod_may_touch_nothing_but_pods_of_its_broker_and_the_lease(cluster: Cluster) -> None:
    who = f"--as=system:serviceaccount:{cluster.namespace}:orders"
    may = {
        ("patch", "pods/orders-0"): "yes",
        ("update", "leases/orders"): "yes",
        ("patch", "pods/others-0"): "no",
        ("update", "leases/others"): "no",
        ("create", "leases"): "no",
        ("delete", "pods/orders-0"): "no",
        ("get", "secrets"): "no",
    }
    for (verb, what), expected in may.items():
        said = cluster.plane.kubectl(
            "-n", cluster.namespace, "auth", "can-i", verb, what, who, check=False
        )
        assert said.strip() == expected, (verb, what)


def test_a_lost_masters_label_is_taken_away(cluster: Cluster, start_pod: StartPod) -> None:
    cluster.plane.kubectl("-n", cluster.namespace, "label", "pod", "orders-1", f"{LABEL}=master")
    start_pod(0).wait_for("master")
    wait_until(lambda: (cluster.label(0), cluster.label(1)) == ("master", "standby"))
