"""`kubectl lockkeeper` against a real API server; the tests play operator, controller, kubelet."""

import json
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from control_plane import ControlPlane

from lockkeeper.cli.cluster.main import main

BROKER = {
    "apiVersion": "lockkeeper.dev/v1alpha1",
    "kind": "Broker",
    "metadata": {"name": "orders"},
    "spec": {"replicas": 2, "storage": {"size": "1Gi"}},
}
QUEUE = {
    "apiVersion": "lockkeeper.dev/v1alpha1",
    "kind": "Destination",
    "metadata": {"name": "incoming"},
    "spec": {"brokerRef": {"name": "orders"}, "name": "orders.in"},
}
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "orders"},
    "spec": {"holderIdentity": "orders-0_1", "leaseTransitions": 3},
}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "orders-client", "labels": {"app.kubernetes.io/instance": "orders"}},
    "stringData": {"password": "correct-horse"},
}
Run = Callable[..., int]


def pod(number: int, role: str) -> dict[str, Any]:
    labels = {
        "app.kubernetes.io/name": "lockkeeper",
        "app.kubernetes.io/instance": "orders",
        "app.kubernetes.io/component": "broker",
        "lockkeeper.dev/role": role,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"orders-{number}", "labels": labels},
        "spec": {"containers": [{"name": "broker", "image": "lockkeeper"}]},
    }


def apply(control_plane: ControlPlane, namespace: str, *manifests: dict[str, Any]) -> None:
    for each in manifests:
        control_plane.kubectl("apply", "-n", namespace, "-f", "-", text=json.dumps(each))


def broker_of(control_plane: ControlPlane, namespace: str) -> Any:
    return json.loads(control_plane.kubectl("get", "lkb", "orders", "-n", namespace, "-ojson"))


@pytest.fixture
def run(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., int]:
    """A pair in a namespace; what runs the plugin in it."""
    apply(control_plane, namespace, BROKER, QUEUE, LEASE, SECRET)
    apply(control_plane, namespace, pod(0, "master"), pod(1, "standby"))
    monkeypatch.setenv("KUBECTL", " ".join(control_plane.binaries.kubectl))
    own = [f"--kubeconfig={control_plane.kubeconfig}", "-n", namespace]
    return lambda *arguments: main([*own, *arguments])


def test_status_shows_pods_lock_and_destinations(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("status", "orders") == 1, "nobody has said yet that it is ready"
    shown = capsys.readouterr().out
    for text in ("orders-0  master", "orders-1  standby", "held by orders-0, epoch 3", "orders.in"):
        assert text in shown
    assert run("status", "orders", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert [each["metadata"]["name"] for each in told["pods"]] == ["orders-0", "orders-1"]
    assert told["broker"]["spec"]["replicas"] == 2


def test_a_broker_that_is_not_there_is_one_clear_line(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("status", "nobody") == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert '"nobody" not found' in told


@pytest.mark.parametrize(
    ("on", "off", "field"), [("pause", "resume", "paused"), ("hibernate", "wake", "hibernated")]
)
def test_switches_go_into_the_spec_and_out_again(
    run: Run, control_plane: ControlPlane, namespace: str, on: str, off: str, field: str
) -> None:
    assert run(on, "orders") == 0
    assert broker_of(control_plane, namespace)["spec"][field] is True
    assert run(off, "orders") == 0
    assert broker_of(control_plane, namespace)["spec"][field] is False


def test_fences_are_noted_on_the_broker_pod_by_pod(
    run: Run, control_plane: ControlPlane, namespace: str
) -> None:
    def fenced() -> str | None:
        annotations = broker_of(control_plane, namespace)["metadata"].get("annotations", {})
        found: str | None = annotations.get("lockkeeper.dev/fenced")
        return found

    assert run("fence", "orders", "orders-1") == 0
    assert fenced() == "orders-1"
    assert run("fence", "orders", "orders-0") == 0
    assert fenced() == "orders-0,orders-1"
    assert run("unfence", "orders", "orders-1") == 0
    assert run("unfence", "orders", "orders-0") == 0
    assert fenced() is None
    assert run("fence", "orders", "other-0") == 2


def test_promote_waits_until_another_pod_is_the_master(
    run: Run, control_plane: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def take_over() -> None:
        time.sleep(1)
        role = "lockkeeper.dev/role=master"
        control_plane.kubectl("label", "pod", "orders-1", role, "--overwrite", "-n", namespace)

    standby = threading.Thread(target=take_over)
    standby.start()
    assert run("promote", "orders") == 0
    standby.join()
    assert "orders-1 is the master, after" in capsys.readouterr().err
    left = control_plane.kubectl("get", "pods", "-n", namespace, "-o", "name")
    assert "orders-0" not in left


def test_promote_refuses_what_cannot_be(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("promote", "orders", "orders-7") == 2
    assert "orders-7 is no standby; there is orders-1" in capsys.readouterr().err
    assert run("promote", "orders", "orders-0") == 0
    assert "is the master already" in capsys.readouterr().err
    assert run("promote", "orders", "--timeout", "1") == 1
    assert "nobody took over within 1 s" in capsys.readouterr().err


def test_a_report_has_the_resources_and_no_secret(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "report.tar.gz"
    assert run("report", "orders", "-o", str(target)) == 0
    shown = capsys.readouterr()
    assert shown.out.strip() == str(target)
    assert "left out orders-0.status.json" in shown.err, "no kubelet runs anything in it"
    with tarfile.open(target) as archive:
        found = {
            each.name: archive.extractfile(each).read().decode()  # type: ignore[union-attr]
            for each in archive.getmembers()
        }
    for name in ("broker", "destinations", "pods", "leases", "secrets"):
        assert f"orders/{name}.yaml" in found
    assert "orders.in" in found["orders/destinations.yaml"]
    assert "password: (left out)" in found["orders/secrets.yaml"]
    everything = "".join(found.values())
    assert "correct-horse" not in everything
    assert "Y29ycmVjdC1ob3JzZQ" not in everything
