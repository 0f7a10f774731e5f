"""A RabbitMQ of our own: it carries the loads, and leaves nothing behind."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import others
import psutil
import pytest
import syncs
from others import Measured, identities, java_project
from run import Client, count_syncs, result_of, run_load
from scenarios import SCENARIOS, unfit

REASON = others.missing("rabbitmq") or java_project.missing()
CARRIED = "acefgjor"
"""One of each kind; the others differ by their numbers only."""

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
]


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> identities.Identity:
    return identities.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def rabbitmq(
    identity: identities.Identity, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Measured]:
    broker = others.start("rabbitmq", tmp_path_factory.mktemp("home") / "rabbitmq", identity)
    yield broker
    processes = [psutil.Process(broker.running.process.pid)]
    processes += processes[0].children(recursive=True)
    broker.running.stop()
    assert psutil.wait_procs(processes, 20)[1] == []


@pytest.fixture(scope="module")
def client(identity: identities.Identity) -> Client:
    class_path = java_project.build(others.HERE / "java")
    command = ["java", "-Xmx512M", *identity.java_options, "-cp", class_path]
    return Client([*command, "dev.lockkeeper.bench.Load"], 0.5, 1)


@pytest.mark.parametrize("scenario", CARRIED)
def test_it_carries(scenario: str, rabbitmq: Measured, client: Client) -> None:
    load = run_load(rabbitmq, client, scenario)
    result = result_of(load, "rabbitmq", scenario, 1)
    assert load.found["messages"] > 0
    assert result.cpu_us > 0
    assert result.peak_mb > 50


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if unfit("rabbitmq", each)])
def test_a_load_that_it_cannot_carry_is_refused(
    scenario: str, rabbitmq: Measured, client: Client
) -> None:
    command = client.line(scenario, rabbitmq.url)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert f"RabbitMQ cannot carry scenario {scenario}" in done.stderr


def test_it_listens_on_loopback_only_and_has_an_epmd_of_its_own(rabbitmq: Measured) -> None:
    node = psutil.Process(rabbitmq.running.process.pid)
    listening = [
        each.laddr for each in node.net_connections("tcp") if each.status == psutil.CONN_LISTEN
    ]
    assert {address.ip for address in listening} == {"127.0.0.1"}
    assert 5672 not in {address.port for address in listening}
    assert 4369 not in {each.raddr.port for each in node.net_connections("tcp") if each.raddr}


def test_a_message_that_is_sent_alone_is_synced(client: Client, tmp_path: Path) -> None:
    if syncs.missing():
        pytest.skip("strace is not installed")
    (found,) = count_syncs("rabbitmq", client, tmp_path / "traced", None, ["a"])
    assert found.syncs >= 0.9
