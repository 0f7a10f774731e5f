"""A broker in a pod: its name, its label, its ports, its token."""

import time
import urllib.error
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from api_objects import POD_PATH, ApiObjects
from pods import NAMESPACE, Pod, wait_until
from ports import free_port

from lockkeeper.cli.main import main
from lockkeeper.client import MessagingError, connect

StartPod = Callable[..., Pod]
LABEL = "lockkeeper.dev/role"
SERVES_ON_SECONDS_MIN = 1.5
"""kube-proxy takes over two changes of a Service in a bit more than a second."""
LEASE_OFF = "  locker: {acquireInterval: 100ms, lease: {enabled: false}}"


def path_of(number: int) -> str:
    return POD_PATH.format(NAMESPACE, f"orders-{number}")


def test_a_process_is_called_as_its_pod_and_keeps_the_admin_port(start_pod: StartPod) -> None:
    pod = start_pod(number=2).wait_for("master")
    status = pod.status()
    assert status["replica"] == "orders-2"
    assert status["admin"].endswith(f":{pod.admin_port}")
    assert status["version"] and status["epoch"] >= 1 and status["takesOver"] is False


def test_the_label_follows_the_role(api: ApiObjects, start_pod: StartPod) -> None:
    port = free_port()
    first = start_pod(number=0, api=api.url, port=port, spec=LEASE_OFF).wait_for("master")
    wait_until(lambda: api.labels(path_of(0)) == {LABEL: "master"})
    second = start_pod(number=1, api=api.url, port=port, spec=LEASE_OFF).wait_for("standby")
    wait_until(lambda: api.labels(path_of(1)) == {LABEL: "standby"})
    assert first.stop() == 0
    assert api.labels(path_of(0)) == {LABEL: "standby"}
    second.wait_for("master")
    wait_until(lambda: api.labels(path_of(1)) == {LABEL: "master"})


def test_a_master_that_is_to_stop_serves_those_who_are_connected_until_services_forget_it(
    api: ApiObjects, start_pod: StartPod
) -> None:
    spec = f"{LEASE_OFF}\n  access: {{anonymous: true}}"
    pod = start_pod(api=api.url, spec=spec).wait_for("master")
    wait_until(lambda: api.labels(path_of(0)) == {LABEL: "master"})
    with connect(f"tcp://127.0.0.1:{pod.port}") as connection, ThreadPoolExecutor(1) as pool:
        producer = connection.session().producer("ORDERS")
        producer.send("before")
        stopped = pool.submit(pod.stop)
        wait_until(lambda: api.labels(path_of(0)) == {LABEL: "standby"})
        began = time.monotonic()
        with pytest.raises(MessagingError):
            while True:
                producer.send("meanwhile")
        assert time.monotonic() - began >= SERVES_ON_SECONDS_MIN
        assert stopped.result() == 0


def test_a_new_process_in_the_pod_of_a_dead_master_first_says_standby(
    api: ApiObjects, start_pod: StartPod
) -> None:
    port = free_port()
    master = start_pod(number=0, api=api.url, port=port, spec=LEASE_OFF).wait_for("master")
    wait_until(lambda: api.labels(path_of(0)) == {LABEL: "master"})
    # Without an API server, so that it cannot take the label from the dead one.
    standby = start_pod(number=1, port=port, spec=LEASE_OFF).wait_for("standby")
    master.kill()
    standby.wait_for("master")
    assert api.labels(path_of(0)) == {LABEL: "master"}
    master.start()
    wait_until(lambda: api.labels(path_of(0)) == {LABEL: "standby"})


def test_a_new_master_takes_the_label_from_one_whose_node_is_gone(
    api: ApiObjects, start_pod: StartPod
) -> None:
    for number in (0, 2):
        lost = api.get(path_of(number))
        lost["metadata"]["labels"] = {LABEL: "master", "other": "label"}
        api.put(path_of(number), lost)
    del api.objects[path_of(0)]
    start_pod(number=1, api=api.url, spec=LEASE_OFF).wait_for("master")
    wait_until(lambda: api.labels(path_of(2)) == {LABEL: "standby", "other": "label"})
    wait_until(lambda: api.labels(path_of(1)) == {LABEL: "master"})


def test_a_label_that_somebody_took_away_comes_back(api: ApiObjects, start_pod: StartPod) -> None:
    start_pod(api=api.url, spec=LEASE_OFF).wait_for("master")
    wait_until(lambda: api.labels(path_of(0)) == {LABEL: "master"})
    pod = api.get(path_of(0))
    pod["metadata"]["labels"] = {}
    api.put(path_of(0), pod)
    wait_until(lambda: api.labels(path_of(0)) == {LABEL: "master"}, 10)


def test_an_answer_that_comes_in_pieces_is_read_to_its_end(
    api: ApiObjects, start_pod: StartPod
) -> None:
    start_pod(api=api.url, spec=LEASE_OFF).wait_for("master")
    wait_until(lambda: api.labels(path_of(0)) == {LABEL: "master"})
    pod = api.get(path_of(0))
    pod["metadata"]["labels"] = {}
    pod["metadata"]["annotations"] = {"long": "x" * 2_000_000}
    api.put(path_of(0), pod)
    wait_until(lambda: api.labels(path_of(0)) == {LABEL: "master"})


def test_a_pod_of_the_same_name_that_came_later_is_left_alone(
    api: ApiObjects, start_pod: StartPod
) -> None:
    pod = start_pod(api=api.url, uid="of-a-pod-that-is-gone", spec=LEASE_OFF).wait_for("master")
    wait_until(lambda: "Precondition failed" in pod.log.read_text())
    assert api.labels(path_of(0)) == {}


def test_without_its_api_server_a_broker_serves_and_stops_all_the_same(
    api: ApiObjects, start_pod: StartPod
) -> None:
    api.cut()
    pod = start_pod(api=api.url, spec=LEASE_OFF).wait_for("master")
    assert pod.stop() == 0
    api.mend()


def test_the_service_accounts_token_is_read_again_when_it_is_renewed(
    api: ApiObjects, start_pod: StartPod, tmp_path: Path
) -> None:
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("old\n")
    api.token = "old"
    start_pod(api=api.url, account=account, spec=LEASE_OFF).wait_for("master")
    wait_until(lambda: api.labels(path_of(0)) == {LABEL: "master"})
    api.token = "new"
    (account / "token").write_text("new\n")
    api.put(path_of(0), api.get(path_of(0)) | {"metadata": {"uid": "uid-of-orders-0"}})
    wait_until(lambda: api.get(path_of(0))["metadata"].get("labels") == {LABEL: "master"}, 10)


def test_a_standby_says_that_it_takes_over_as_long_as_it_could_read(start_pod: StartPod) -> None:
    port = free_port()
    master = start_pod(number=0, port=port, spec=LEASE_OFF).wait_for("master")
    standby = start_pod(number=1, port=port, spec=LEASE_OFF).wait_for("standby")
    wait_until(lambda: standby.status()["takesOver"])
    assert standby.status()["epoch"] is None
    index = standby.data / "db.data"
    index.mkdir()
    wait_until(lambda: not standby.status()["takesOver"])
    assert "could not take over" in standby.log.read_text()
    index.rmdir()
    wait_until(lambda: standby.status()["takesOver"])
    assert master.status()["takesOver"] is False


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    directory = tmp_path / "secrets"
    directory.mkdir()
    (directory / "admin-token").write_text("s3cret\n")
    return directory


def refused(pod: Pod, path: str, token: str = "") -> bool:
    try:
        pod.ask(path, token)
    except urllib.error.HTTPError as error:
        with error:
            assert error.code == 401
            assert error.headers["WWW-Authenticate"] == "Bearer"
        return True
    return False


def test_what_the_api_tells_needs_the_token(start_pod: StartPod, secrets: Path) -> None:
    pod = start_pod(secrets=secrets)
    wait_until(lambda: "is master" in pod.log.read_text())
    assert pod.ask("/healthz") == {"status": "ok"}
    assert pod.ask("/readyz") == {"role": "master"}
    assert refused(pod, "/api/v1/status") and refused(pod, "/api/v1/status", "wrong")
    assert refused(pod, "/api/v1/status", "\xff")
    assert refused(pod, "/api/v1/nothing")
    assert pod.ask("/api/v1/status", "s3cret")["role"] == "master"
    (secrets / "admin-token").write_text("renewed")
    assert refused(pod, "/api/v1/status", "s3cret")
    assert not refused(pod, "/api/v1/status", "renewed")
    (secrets / "admin-token").unlink()
    assert refused(pod, "/api/v1/status") and refused(pod, "/api/v1/status", "renewed")


def test_commands_show_the_token(
    start_pod: StartPod,
    secrets: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pod = start_pod(secrets=secrets)
    wait_until(lambda: "is master" in pod.log.read_text())
    assert main(["status", "--admin", pod.admin, "--token", "s3cret"]) == 0
    assert main(["destinations", "--admin", pod.admin]) == 1
    assert "the admin token is needed" in capsys.readouterr().err
    monkeypatch.setenv("LOCKKEEPER_ADMIN_TOKEN", "s3cret")
    assert main(["destinations", "--admin", pod.admin]) == 0
