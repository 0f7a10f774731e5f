"""The Lease besides the file lock: whoever cannot renew it stops, before another may begin."""

import asyncio
import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import wire
from api_objects import LEASE_PATH, ApiObjects
from pods import NAMESPACE, Pod, wait_until
from ports import free_port

from lockkeeper.journal.batch import EOF_RECORD
from lockkeeper.message.destination import queue
from lockkeeper.server.cluster.api_server import ApiServer
from lockkeeper.server.cluster.election import SECOND_NS
from lockkeeper.server.cluster.lease import LeaseGuard, LeaseTimes
from lockkeeper.server.cluster.pod_environment import ApiServerAccess
from lockkeeper.server.storage import Storage
from lockkeeper.store.kahadb.preallocation import SPARE_PREFIX, SPARE_SUFFIX

StartPod = Callable[..., Pod]
LEASE = LEASE_PATH.format(NAMESPACE, "orders")
# A master that gets no core for DEADLINE stops: tests with these times have the machine to
# themselves (marker crash).
DURATION, DEADLINE = 4.0, 2.5
LONG_DURATION = 40.0
SPEC = """\
  access: {anonymous: true}
  locker:
    acquireInterval: 100ms
    keepAlivePeriod: 100ms
    lease: {duration: 40s, renewDeadline: 25s, retryPeriod: 200ms}
"""
SHORT = """\
  access: {anonymous: true}
  locker:
    acquireInterval: 100ms
    keepAlivePeriod: 100ms
    lease: {duration: 4s, renewDeadline: 2500ms, retryPeriod: 200ms}
"""


def spec_of(api: ApiObjects) -> dict[str, object]:
    found: dict[str, object] = api.get(LEASE).get("spec", {})
    return found


def journal(data: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in data.glob("db-*.log")}


def contents(port: int) -> list[bytes]:
    with wire.Wire(port) as connection:
        return [message.content or b"" for message in connection.browse(queue("Q"))]


@pytest.fixture
def port() -> int:
    return free_port()


def test_a_master_holds_the_lease(api: ApiObjects, start_pod: StartPod) -> None:
    pod = start_pod(api=api.url, spec=SPEC).wait_for("master")
    found = spec_of(api)
    assert found["holderIdentity"] == "orders-0_uid-of-orders-0"
    assert (found["leaseTransitions"], found["leaseDurationSeconds"]) == (1, 40)
    status = pod.status()
    assert status["epoch"] == 1
    assert status["lease"]["holder"] == found["holderIdentity"]
    assert status["lease"]["renewedAgo"] < 1000
    assert "is standby" not in pod.log.read_text()
    wait_until(lambda: spec_of(api)["renewTime"] > found["renewTime"])  # type: ignore[operator]
    assert spec_of(api)["acquireTime"] == found["acquireTime"]
    assert pod.stop() == 0
    assert spec_of(api)["holderIdentity"] == ""


def test_a_clean_stop_lets_the_standby_take_over_at_once(
    api: ApiObjects, start_pod: StartPod, port: int
) -> None:
    first = start_pod(number=0, api=api.url, port=port, spec=SPEC).wait_for("master")
    second = start_pod(number=1, api=api.url, port=port, spec=SPEC).wait_for("standby")
    wait_until(lambda: second.status()["takesOver"])
    with wire.Wire(port) as connection:
        connection.request(wire.bytes_message(connection.producer(), 1, queue("Q"), b"kept"))
    assert first.stop() == 0
    began = time.monotonic()
    second.wait_for("master")
    assert time.monotonic() - began < LONG_DURATION - 10
    assert second.status()["epoch"] == 2
    assert contents(port) == [b"kept"]


@pytest.mark.crash
def test_after_a_crash_the_standby_waits_until_the_lease_is_old(
    api: ApiObjects, start_pod: StartPod, port: int
) -> None:
    first = start_pod(number=0, api=api.url, port=port, spec=SHORT).wait_for("master")
    second = start_pod(number=1, api=api.url, port=port, spec=SHORT).wait_for("standby")
    wait_until(lambda: second.status()["lease"]["epoch"] == 1)
    first.kill()
    began = time.monotonic()
    second.wait_for("master")
    assert DURATION - 0.7 < time.monotonic() - began < DURATION + 6
    assert spec_of(api)["leaseTransitions"] == 2


def test_a_new_process_in_the_pod_of_the_holder_ends_the_wait(
    api: ApiObjects, start_pod: StartPod, port: int
) -> None:
    first = start_pod(number=0, api=api.url, port=port, spec=SPEC).wait_for("master")
    second = start_pod(number=1, api=api.url, port=port, spec=SPEC).wait_for("standby")
    first.kill()
    time.sleep(0.5)
    assert second.status()["role"] == "standby"
    first.start()
    second.wait_for("master")
    first.wait_for("standby")


@pytest.mark.crash
def test_a_master_cut_off_from_the_api_server_stops_and_serves_again_when_that_is_back(
    api: ApiObjects, start_pod: StartPod
) -> None:
    pod = start_pod(api=api.url, spec=SHORT).wait_for("master")
    with wire.Wire(pod.port) as connection:
        producer = connection.producer()
        connection.request(wire.bytes_message(producer, 1, queue("Q"), b"kept"))
        api.cut()
        began = time.monotonic()
        with pytest.raises((OSError, EOFError)):
            for number in range(2, 1000):
                connection.request(wire.bytes_message(producer, number, queue("R"), b"more"))
                time.sleep(0.01)
        stopped = time.monotonic() - began
    assert pod.process.wait(10) == 1
    assert DEADLINE - 0.4 < stopped < DURATION
    assert "the lease was not renewed for 2.5 s" in pod.log.read_text()
    pod.start()
    wait_until(lambda: pod.status()["role"] == "standby")
    assert pod.status()["takesOver"] is False
    api.mend()
    pod.wait_for("master")
    assert contents(pod.port) == [b"kept"]


@pytest.mark.crash
def test_a_master_that_slept_past_its_deadline_answers_and_writes_nothing(
    api: ApiObjects, start_pod: StartPod
) -> None:
    pod = start_pod(api=api.url, spec=SHORT).wait_for("master")
    with wire.Wire(pod.port) as connection:
        producer = connection.producer()
        connection.request(wire.bytes_message(producer, 1, queue("Q"), b"kept"))
        time.sleep(0.1)
        pod.process.send_signal(signal.SIGSTOP)
        before = journal(pod.data)
        connection.ask(wire.bytes_message(producer, 2, queue("Q"), b"arrived in its sleep"))
        time.sleep(DEADLINE + 0.2)
        pod.process.send_signal(signal.SIGCONT)
        with pytest.raises((OSError, EOFError)):
            while connection.receive(10):
                assert not connection.answers
        assert not connection.answers
    assert pod.process.wait(10) == 1
    assert journal(pod.data) == before
    pod.start()
    pod.wait_for("master")
    assert contents(pod.port) == [b"kept"]


def has_spare(directory: Path) -> bool:
    """Tell whether the file that is made ahead is ready."""
    for path in directory.glob(f"{SPARE_PREFIX}*{SPARE_SUFFIX}"):
        with path.open("rb") as file:
            return file.read(len(EOF_RECORD)) == EOF_RECORD
    return False


@pytest.mark.crash
def test_where_the_file_lock_is_broken_the_lease_alone_keeps_the_second_away(
    api: ApiObjects, start_pod: StartPod, port: int
) -> None:
    # Such a file system does not tell the holder either, so it is not asked to look.
    blind = SHORT.replace("keepAlivePeriod: 100ms", "keepAlivePeriod: 0s")
    first = start_pod(number=0, api=api.url, port=port, spec=blind).wait_for("master")
    # Whoever begins a file, or makes the next one, looks at the lock all the same.
    wait_until(lambda: (first.data / "db-1.log").exists() and has_spare(first.data))
    (first.data / "lock").unlink()
    second = start_pod(number=1, api=api.url, spec=blind).wait_for("standby")
    wait_until(lambda: second.status()["takesOver"])
    with wire.Wire(first.port) as connection:
        producer = connection.producer()
        for number in range(1, 60):
            connection.request(wire.bytes_message(producer, number, queue("Q"), b"%d" % number))
            time.sleep(DURATION / 40)
        assert second.status()["role"] == "standby"
        first.process.send_signal(signal.SIGSTOP)
        connection.ask(wire.bytes_message(producer, 60, queue("Q"), b"too late"))
        second.wait_for("master")
        # What the second writes is in a file of its own.
        before = journal(first.data)["db-1.log"]
        first.process.send_signal(signal.SIGCONT)
        with pytest.raises((OSError, EOFError)):
            while connection.receive(10):
                assert not connection.answers
    assert first.process.wait(10) == 1
    assert journal(first.data)["db-1.log"] == before
    assert contents(second.port) == [b"%d" % number for number in range(1, 60)]


def test_a_lease_that_somebody_empties_ends_the_master(
    api: ApiObjects, start_pod: StartPod
) -> None:
    pod = start_pod(api=api.url, spec=SPEC).wait_for("master")
    lease = api.get(LEASE)
    lease["spec"]["holderIdentity"] = ""
    api.put(LEASE, lease)
    assert pod.process.wait(10) == 1
    assert "the lease is nobody's now" in pod.log.read_text()


def test_a_lease_that_was_deleted_and_made_again_is_claimed_again(
    api: ApiObjects, start_pod: StartPod
) -> None:
    pod = start_pod(api=api.url, spec=SPEC).wait_for("master")
    assert pod.stop() == 0
    pod.start()
    pod.wait_for("master")
    assert pod.status()["epoch"] == 2
    api.add_lease(NAMESPACE, "orders")
    wait_until(lambda: spec_of(api).get("holderIdentity"))
    assert spec_of(api)["leaseTransitions"] == 2
    assert pod.status()["role"] == "master"


def test_a_deleted_lease_does_not_make_epochs_begin_anew(
    api: ApiObjects, start_pod: StartPod
) -> None:
    pod = start_pod(api=api.url, spec=SPEC).wait_for("master")
    for epoch in (2, 3):
        assert pod.stop() == 0
        pod.start()
        assert pod.wait_for("master").status()["epoch"] == epoch
    assert pod.stop() == 0
    api.add_lease(NAMESPACE, "orders")
    pod.start()
    assert pod.wait_for("master").status()["epoch"] == 4
    assert spec_of(api)["leaseTransitions"] == 4


def test_without_a_lease_to_hold_a_broker_stands_by(api: ApiObjects, start_pod: StartPod) -> None:
    del api.objects[LEASE]
    pod = start_pod(api=api.url, spec=SPEC).wait_for("standby")
    assert pod.status()["takesOver"] is False
    assert "not found" in pod.status()["lease"]["trouble"]
    api.add_lease(NAMESPACE, "orders")
    pod.wait_for("master")


LOCKING = """
import sys
from pathlib import Path
from lockkeeper.store.kahadb import DirectoryLock
assert DirectoryLock(Path(sys.argv[1])).try_acquire(1)
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_standby_that_has_left_the_file_lock_to_another_leaves_it_the_lease(
    api: ApiObjects, tmp_path: Path
) -> None:
    """Each with one of the two would keep the other from serving, for ever."""
    spec = {"holderIdentity": "dead", "leaseTransitions": 3, "leaseDurationSeconds": 3}
    api.put(LEASE, {"kind": "Lease", "metadata": {"name": "orders"}, "spec": spec})
    asyncio.run(leave_the_lock(api, tmp_path))


async def leave_the_lock(api: ApiObjects, data: Path) -> None:
    access = ApiServerAccess(api.url)
    times = LeaseTimes(2 * SECOND_NS, 2 * SECOND_NS, SECOND_NS // 2)
    async with ApiServer(access) as one, ApiServer(access) as another:
        first = LeaseGuard(one, LEASE, "first", times, print)
        second = LeaseGuard(another, LEASE, "second", times, print)
        for guard in (first, second):
            guard.start()
            await guard.first_look(5)
        storage = Storage(data, first)
        assert not storage.try_lock() and storage.awaited_lease is first
        api.cut()
        await until(lambda: not first.is_watched, 10)
        assert not storage.try_lock() and storage.awaited_lease is None
        command = [sys.executable, "-c", LOCKING, str(data)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None and other.stdout.readline() == b"locked\n"
            api.mend()
            # Meanwhile the Lease grows old enough for anybody.
            await until(lambda: bool(storage.try_lock()), 6)
            await until(lambda: storage.try_lock() or second.try_acquire(1), 10)
            other.kill()
        taken = second.epoch
        for guard in (first, second):
            await guard.give_back()
    assert taken == 4


async def until(condition: Callable[[], bool], seconds: float) -> None:
    """Look again and again, for so long at most."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.02)
