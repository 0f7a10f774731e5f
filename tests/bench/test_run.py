"""Options of the bench, what processes have used, and counted syncs."""

import os
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import others
import psutil
import pytest
import run
import syncs
from measuring import usage
from run import alone, arguments

LOG = """\
12 100.000000 fdatasync(7) = 0
12 100.500000 io_submit(0x7f, 1, [{aio_lio_opcode=IOCB_CMD_FDSYNC, aio_fildes=9}]) = 1
13 100.600000 io_submit(0x7f, 2, [{aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=9}, {}]) = 2
13 100.700000 fsync(8 <unfinished ...>
13 100.800000 <... fsync resumed>) = 0
12 101.000000 fsync(7) = 0
12 101.100000 +++ exited with 0 +++
"""


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["--scenarios", "aZ"], "--scenarios: Z is not among abc"),
        (["--scenarios", ""], "--scenarios: nothing is not among abc"),
        (["--brokers", "kafka"], "invalid choice: 'kafka'"),
        (["--rounds", "0"], "--rounds: at least 1"),
        (["--seconds", "0"], "--seconds: at least 0.1"),
        (["--day", "0"], "--day: at least 0.1"),
        (["--warm-up", "-1"], "--warm-up: at least 0"),
        (["--minutes", "-1"], "--minutes: at least 0"),
        (["--beside", "/nowhere"], "--beside: /nowhere is no checkout of Lockkeeper"),
    ],
)
def test_wrong_options_are_named(
    given: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        arguments(given)
    assert complaint in capsys.readouterr().err


def test_scenarios_and_brokers_are_taken_once() -> None:
    asked = arguments(["--scenarios", "aba", "--brokers", "rabbitmq", "lockkeeper", "rabbitmq"])
    assert (asked.scenarios, asked.brokers) == (["a", "b"], ["rabbitmq", "lockkeeper"])


def test_the_code_of_another_checkout_is_what_runs(tmp_path: Path) -> None:
    package = tmp_path / "checkout" / "broker_image" / "lockkeeper"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('the other version')\n")
    asked = arguments(["--beside", str(tmp_path / "checkout")])
    assert asked.brokers == ["lockkeeper", "activemq", others.BESIDE]
    with pytest.raises(RuntimeError, match="the other version"):
        others.start(others.BESIDE, tmp_path / "data")


@pytest.mark.parametrize(("minutes", "rounds"), [("0", 5), ("3", 3), ("3.5", 3), ("0.5", 1)])
def test_rounds_that_would_end_too_late_are_left_out(
    minutes: str, rounds: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    passed = 0.0

    def take_a_minute(*_: object) -> None:
        nonlocal passed
        passed += 60

    result = SimpleNamespace(rate=1.0, cpu_us=1.0, p50_us=None)
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: passed))
    monkeypatch.setattr(run, "run_load", take_a_minute)
    monkeypatch.setattr(run, "result_of", lambda *_: result)
    monkeypatch.setattr(run, "alone", lambda *_: nullcontext())
    asked = arguments(["--scenarios", "a", "--rounds", "5", "--minutes", minutes])
    running: Any = [SimpleNamespace(kind="lockkeeper")]
    client: Any = None
    found: Any = run.run_rounds(running, client, asked)
    assert found == ([result] * rounds, [])
    told = f"Round {rounds + 1} would end after {float(minutes):g} minutes: it is left out."
    assert (told in capsys.readouterr().out) == (rounds < 5)


def test_syncs_are_counted_within_the_measured_time() -> None:
    assert syncs.count(LOG, syncs.Span(100, 101)) == 3
    assert syncs.count(LOG, syncs.Span(100.6, 200)) == 2
    assert syncs.count("", syncs.Span(0, 1)) == 0


@pytest.mark.skipif(syncs.missing() is not None, reason="strace is not installed")
def test_strace_sees_each_sync(tmp_path: Path) -> None:
    program = (
        "import os, sys, time; file = open(sys.argv[1], 'w')\n"
        "for _ in range(5): os.fdatasync(file.fileno())"
    )
    log = tmp_path / "log"
    before = time.time()
    command = [*syncs.tracer(log), sys.executable, "-c", program, str(tmp_path / "file")]
    subprocess.run(command, check=True, timeout=60)
    deadline = time.monotonic() + 20
    while "exited" not in log.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert syncs.count(log.read_text(), syncs.Span(before, time.time())) == 5


def test_the_usage_of_children_counts() -> None:
    """A broker that lets a child do the work is not cheaper for it."""
    child = "import time\nwhile time.process_time() < 0.3: pass\ninput()"
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while usage(process.pid).cpu < 0.3 and time.monotonic() < deadline:
            time.sleep(0.05)
        found = usage(process.pid)
        process.communicate(b"\n", timeout=60)
    assert found.cpu >= 0.3
    assert found.calls > 0
    assert found.peak_mb > 10
    assert usage(os.getpid()).peak_mb > 10


def test_the_usage_of_a_child_that_has_ended_still_counts() -> None:
    before = usage(os.getpid())
    work = "import time\nwhile time.process_time() < 0.4: pass"
    subprocess.run([sys.executable, "-c", work], check=True)
    after = usage(os.getpid())
    # The kernel counts in ticks of 10 ms, and each of four figures may lack one.
    assert after.cpu - before.cpu > 0.35
    assert after.calls > before.calls


def stands_still(process: psutil.Process, wanted: bool = True) -> bool:
    """Tell whether a process is stopped, which takes the kernel a moment."""
    deadline = time.monotonic() + 10
    while (is_stopped := process.status() == psutil.STATUS_STOPPED) is not wanted:
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return is_stopped


def test_others_stand_still_and_may_end_meanwhile() -> None:
    command = [sys.executable, "-c", "input()"]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(3)]
    brokers: list[Any] = [
        SimpleNamespace(running=SimpleNamespace(process=process)) for process in processes
    ]
    try:
        with alone(brokers[0], brokers):
            measured, still, ended = (psutil.Process(process.pid) for process in processes)
            assert stands_still(still) and stands_still(ended)
            assert measured.status() != psutil.STATUS_STOPPED
            processes[2].kill()
            processes[2].wait()
        assert not stands_still(still, wanted=False)
    finally:
        for process in processes:
            process.kill()
            process.communicate()


LOAD = """
import json, sys, time
scenario, url = sys.argv[1:3]
print("START", flush=True)
if (scenario, url) == ("b", "tcp://hangs"):
    time.sleep(600)
if (scenario, url) == ("c", "tcp://fails"):
    sys.exit("no such queue")
print("END", flush=True)
print(json.dumps({"messages": 10, "seconds": 2}))
"""


def test_a_load_that_hangs_or_fails_is_left_out_and_all_others_count(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "LOAD_SECONDS_MORE", 1)
    process = SimpleNamespace(pid=os.getpid())
    # As the load itself ends or hangs, no broker is asked anything.
    brokers: Any = [
        SimpleNamespace(kind=kind, url=f"tcp://{kind}", running=SimpleNamespace(process=process))
        for kind in ("hangs", "fails")
    ]
    monkeypatch.setattr(run, "alone", lambda *_: nullcontext())
    client = run.Client([sys.executable, "-c", LOAD], 0, 0.5)
    asked = arguments(["--scenarios", "abc", "--rounds", "2"])
    results, failures = run.run_rounds(brokers, client, asked)
    found = {(each.broker, each.scenario, each.round): each.rate for each in results}
    every = {
        (kind, letter, number)
        for kind in ("hangs", "fails")
        for letter in "abc"
        for number in (1, 2)
    }
    left_out = {("hangs", "b", 1), ("hangs", "b", 2), ("fails", "c", 1), ("fails", "c", 2)}
    assert found == dict.fromkeys(every - left_out, 5.0)
    assert [(each.broker, each.scenario, each.round, each.reason) for each in failures] == [
        ("hangs", "b", 1, "it did not end within 2 s"),
        ("fails", "c", 1, "the client ended with an error"),
    ]
    assert "round 1  b  hangs       it did not end within 2 s" in capsys.readouterr().out


def test_a_bench_that_is_told_to_stop_waits_for_no_load(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: int) -> None:
        sys.exit(130)

    monkeypatch.setattr(run, "usage", stop)
    process = SimpleNamespace(pid=os.getpid())
    broker: Any = SimpleNamespace(url="tcp://hangs", running=SimpleNamespace(process=process))
    began = time.monotonic()
    with pytest.raises(SystemExit):
        run.run_load(broker, run.Client([sys.executable, "-c", LOAD], 0, 0.5), "b")
    assert time.monotonic() - began < 60
    # A cancelled timer's thread takes a moment to end.
    timers = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
    assert all(each.finished.is_set() for each in timers)
