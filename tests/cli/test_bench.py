"""`lockkeeper bench` against a real broker: it counts exactly, and removes nothing else."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from cli_support import (
    COMMAND,
    CommandLine,
    Place,
    role_at,
    run_broker,
    stop,
    wait_until,
)
from hypothesis import given
from hypothesis import strategies as st
from ports import free_ports

from lockkeeper.cli.bench.histogram import Histogram


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """A broker that a test may stop."""
    port, admin_port = free_ports(2)
    process = run_broker(
        tmp_path / "data", f"openwire://127.0.0.1:{port}", f"127.0.0.1:{admin_port}"
    )
    wait_until(lambda: role_at(f"http://127.0.0.1:{admin_port}") == "master", process)
    yield f"tcp://127.0.0.1:{port}", process
    process.send_signal(signal.SIGCONT)
    stop(process)


def measured(lockkeeper: CommandLine, *arguments: str) -> Any:
    """Return the figures of a bench that must succeed, of one process unless told otherwise."""
    outcome = lockkeeper("bench", "--json", "--processes", "1", *arguments)
    assert outcome.code == 0, outcome.err
    return outcome.json()


def waiting(lockkeeper: CommandLine, queue: str) -> int:
    return len(lockkeeper("browse", queue, "--json").json_lines())


def test_every_message_of_a_queue_is_counted_once(lockkeeper: CommandLine, queue: str) -> None:
    figures = measured(
        lockkeeper, queue, "--processes", "2",
        "-x", "3", "-y", "2", "-n", "500", "--transaction", "7", "--size", "100",
    )  # fmt: skip
    assert (figures["sent"], figures["received"], figures["missing"]) == (500, 500, 0)
    assert (figures["producers"], figures["consumers"], figures["bytes"]) == (3, 2, 100)
    assert sum(step["messages"] for step in figures["histogram"]) == 500
    assert 0 < figures["deliveryMs"]["p50"] <= figures["deliveryMs"]["max"]
    assert waiting(lockkeeper, queue) == 0


def test_every_consumer_of_a_topic_gets_every_message(lockkeeper: CommandLine, queue: str) -> None:
    topic = f"topic://{queue}"
    figures = measured(lockkeeper, topic, "-x", "2", "-y", "3", "-n", "101", "--non-persistent")
    assert (figures["sent"], figures["received"]) == (101, 303)


def test_a_queue_is_filled_first_and_drained_later(lockkeeper: CommandLine, queue: str) -> None:
    filled = lockkeeper("bench", queue, "-y", "0", "-n", "40")
    assert filled.code == 0
    assert f"40 messages wait in queue://{queue} now" in filled.out
    (message, *_) = lockkeeper.done("browse", queue, "--json").json_lines()
    assert message["persistent"] is True
    figures = measured(lockkeeper, queue, "-x", "0", "-y", "2", "-n", "40")
    assert (figures["sent"], figures["received"]) == (0, 40)
    assert waiting(lockkeeper, queue) == 0


def test_messages_of_earlier_runs_are_not_counted(lockkeeper: CommandLine, queue: str) -> None:
    measured(lockkeeper, queue, "-y", "0", "-n", "5")
    figures = measured(lockkeeper, queue, "-n", "20")
    assert (figures["sent"], figures["received"], figures["ofEarlierRuns"]) == (20, 20, 5)


@pytest.mark.parametrize("transaction", ["0", "10"])
def test_messages_of_others_stay(lockkeeper: CommandLine, queue: str, transaction: str) -> None:
    lockkeeper.done("send", queue, "two pounds of tea")
    outcome = lockkeeper("bench", queue, "-n", "20", "--transaction", transaction)
    assert outcome.code == 2
    assert f"queue://{queue} has messages that are not of a bench" in outcome.err
    assert "name another destination" in outcome.err
    bodies = [each["body"] for each in lockkeeper.done("browse", queue, "--json").json_lines()]
    assert bodies.count("two pounds of tea") == 1


def test_a_rate_is_kept(lockkeeper: CommandLine, queue: str) -> None:
    before = time.monotonic()
    figures = measured(lockkeeper, queue, "-x", "2", "-n", "100", "-r", "50")
    assert time.monotonic() - before > 0.9
    assert figures["received"] == 100
    assert figures["sentPerSecond"] < 110


def test_a_pause_of_the_broker_is_in_the_latency_of_all_it_held_up(
    own_broker: tuple[str, "subprocess.Popen[bytes]"],
) -> None:
    url, process = own_broker
    running = subprocess.Popen(
        [COMMAND, "bench", "--json", "--url", url, "-r", "100", "-d", "4s"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stderr is not None
    assert "1 s   sent" in running.stderr.readline()
    process.send_signal(signal.SIGSTOP)
    time.sleep(1)
    process.send_signal(signal.SIGCONT)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 0
    figures = json.loads(out)
    # A hundred were due in that second, and half of them waited for half of it.
    late = sum(step["messages"] for step in figures["histogram"] if step["upToMs"] > 500)
    assert late > 30
    assert figures["sent"] == figures["received"]


def test_control_c_ends_the_sending_and_tells_what_was_done(
    own_broker: tuple[str, "subprocess.Popen[bytes]"],
) -> None:
    url, _ = own_broker
    running = subprocess.Popen(
        [COMMAND, "bench", "--url", url, "-d", "1h", "-x", "2", "--transaction", "10"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert running.stderr is not None
    assert "1 s   sent" in running.stderr.readline()
    os.killpg(running.pid, signal.SIGINT)
    out, errors = running.communicate(timeout=60)
    assert running.returncode == 0, errors
    lines = {line.split()[0]: line.split()[1] for line in out.splitlines() if line.strip()}
    assert lines["sent"] == lines["received"] != "0"


def test_a_broker_that_is_killed_ends_the_bench(
    own_broker: tuple[str, "subprocess.Popen[bytes]"],
) -> None:
    url, process = own_broker
    running = subprocess.Popen(
        [COMMAND, "bench", "--url", url, "-d", "1h"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stderr is not None
    assert "1 s   sent" in running.stderr.readline()
    process.kill()
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 1
    assert "Traceback" not in errors
    assert f"no broker could be reached again at {url}" in errors


def test_a_process_that_dies_ends_the_bench(broker: Place, queue: str) -> None:
    running = subprocess.Popen(
        [COMMAND, "bench", queue, "--url", broker.url, "-d", "1h", "--processes", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stderr is not None
    assert "1 s   sent" in running.stderr.readline()
    children = psutil.Process(running.pid).children(recursive=True)
    served = [each for each in children if "spawn_main" in " ".join(each.cmdline())]
    assert len(served) == 2
    served[0].kill()
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 1
    assert "a process of the bench has ended by itself" in errors
    assert not psutil.pid_exists(served[1].pid)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-x", "0", "-y", "0"], "nobody would send or receive"),
        (["--size", "23"], "--size: expected 24 bytes to 100Mi, found 23"),
        (["--size", "1Gi"], "--size: expected 24 bytes to 100Mi, found 1Gi"),
        (["--size", "big"], "--size: expected a size such as"),
        (["--duration", "soon"], "--duration: "),
        (["stomp://X"], "write NAME, queue://NAME or topic://NAME"),
    ],
)
def test_what_makes_no_sense_is_refused(
    lockkeeper: CommandLine, arguments: list[str], said: str
) -> None:
    outcome = lockkeeper("bench", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_no_broker_is_said_at_once(lockkeeper: CommandLine) -> None:
    outcome = lockkeeper("bench", "--url", "tcp://127.0.0.1:1", "-x", "3")
    assert outcome.code == 1
    assert outcome.err == (
        "lockkeeper: no broker could be reached at tcp://127.0.0.1:1: Connection refused; "
        "start one with `lockkeeper up`, or name another by --url\n"
    )


@given(st.lists(st.integers(-5, 10**9), min_size=1), st.floats(0.001, 1))
def test_a_percentile_is_at_most_a_32nd_too_long(durations: list[int], share: float) -> None:
    halves = [Histogram(), Histogram()]
    for number, duration in enumerate(durations):
        halves[number % 2].add(duration)
    whole = Histogram()
    for half in halves:
        whole.merge(half)
    rank = next(each for each in range(1, len(durations) + 1) if each >= share * len(durations))
    exact = sorted(max(0, each) for each in durations)[rank - 1]
    assert exact <= whole.percentile(share) <= exact + exact / 32
    assert whole.total == len(durations) == sum(count for _, count in whole.by_steps())
    assert whole.longest == max(0, *durations)
