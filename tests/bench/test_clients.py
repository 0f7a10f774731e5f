"""The bench of clients: each really sends and receives, and a message that stays away is told."""

import subprocess
import sys
from pathlib import Path

import clients
import others
import pytest
from client_loads import ASYNCIO
from clients import Run, arguments, measure, table

from lockkeeper.client import connect

PAIRS = [(client, kind) for client, kinds in clients.TALKS_TO.items() for kind in kinds]


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted({kind for _, kind in PAIRS}))
def test_every_client_sends_and_receives(kind: str, tmp_path: Path) -> None:
    reason = others.missing(kind) or others.java_project.missing()
    if reason:
        pytest.skip(reason)
    asked = arguments(["--messages", "300"])
    broker = others.start(kind, tmp_path / kind, stomp=True)
    try:
        for client in (each for each, at in PAIRS if at == kind):
            for what in clients.WHAT:
                run = measure(client, broker, what, asked)
                assert (run.client, run.broker, run.what) == (client, kind, what)
                assert min(run.rate, run.cpu_us, run.peak_mb) > 0
    finally:
        broker.running.stop()


def test_a_message_that_does_not_come_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "client_loads.py").write_text("raise SystemExit('message 7 does not come')\n")
    monkeypatch.setattr(clients, "HERE", tmp_path)
    waits = [sys.executable, "-c", "import time; time.sleep(60)"]
    running = others.brokers.RunningBroker("lockkeeper", 1, tmp_path / "b", waits, waits=False)
    try:
        with pytest.raises(RuntimeError, match=r"failed with lockkeeper:\nmessage 7 does not"):
            measure("lockkeeper", others.Measured(running, "tcp://x"), "receives", arguments([]))
    finally:
        running.kill()


def test_a_load_waits_for_as_many_messages_as_were_sent() -> None:
    script = "import client_loads as loads; loads.RECEIVE_SECONDS_MAX = 0.2\n" + (
        "class Losing(loads.Client):\n"
        "    def sender(self, name, is_topic): return lambda: sent.append(1)\n"
        "    def settle(self): sent.append(1)\n"
        "    def receive(self, name, count, begin, warm_up): assert len(sent) == count; begin()\n"
        "sent = []\n"
        "loads.run(Losing(), 'Q', 'receives', 5, 7); assert len(sent) == 12\n"
        "sent = []\n"
        "loads.run(Losing(), 'Q', 'sends', 5, 7); assert len(sent) == 14\n"
    )
    where = Path(clients.__file__).parent
    subprocess.run([sys.executable, "-c", script], cwd=where, check=True, timeout=60)


def test_what_coroutines_send_goes_to_a_topic_as_all_others_do(tmp_path: Path) -> None:
    broker = others.start("lockkeeper", tmp_path / "lockkeeper")
    try:
        with connect(broker.url) as connection:
            consumer = connection.session().consumer("topic://T")
            told = measure(ASYNCIO, broker, "sends", arguments(["--messages", "4"]), name="T")
            assert [consumer.receive(20) is not None for _ in range(8)] == [True] * 8
    finally:
        broker.running.stop()
    assert told.rate > 0


def test_the_table_has_medians_and_their_spread() -> None:
    runs = [
        Run("lockkeeper", "activemq", "sends", rate, cpu, 33.4)
        for rate, cpu in ((1000.0, 9.04), (3000.0, 7.0), (2000.0, 8.0))
    ]
    told = table(runs, arguments(["--rounds", "3", "--messages", "500"]))
    assert "Medians of 3 rounds of 500 messages" in told
    assert told.splitlines()[-1] == (
        "| lockkeeper | activemq | sends | 2,000 (1,000 to 3,000) | 8.0 (7.0 to 9.0) | 33 |"
    )


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["--clients", "qpid"], "invalid choice: 'qpid'"),
        (["--rounds", "0"], "--rounds: at least 1"),
        (["--messages", "1"], "--messages: at least 2"),
    ],
)
def test_wrong_options_are_named(
    given: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        arguments(given)
    assert complaint in capsys.readouterr().err
