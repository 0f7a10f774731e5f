"""20,000 made inputs; and what the fuzzer must be able to see.

More of them: `make fuzz`. The seed is always the same here, so that a failure stays one; it is
told with each finding, and how to make its input again.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzzer import MEMORY, Outcome, Target, fuzz, made
from run_fuzz import all_targets, shares

from lockkeeper.message import primitives
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.protocols.openwire.session import OpenWireSession

SEED = 20_261_122
INPUTS = 20_000
TARGETS = all_targets()
INPUTS_OF = shares(TARGETS, INPUTS)


def target_called(name: str) -> Target:
    (found,) = (each for each in TARGETS if each.name == name)
    return found


def told(outcome: Outcome) -> str:
    return "\n".join(map(str, outcome.findings))


@pytest.mark.parametrize("name", INPUTS_OF)
def test_only_documented_errors_come_of_any_input(name: str) -> None:
    outcome = fuzz(target_called(name), SEED, INPUTS_OF[name])
    assert not outcome.findings, told(outcome)


def test_an_input_is_made_again_from_seed_target_and_number() -> None:
    for target in TARGETS:
        inputs = [made(target, SEED, number) for number in range(5)]
        assert [made(target, SEED, number) for number in range(5)] == inputs


def findings_of(run: Callable[[bytes], object], **bounds: Any) -> list[str]:
    target = Target("planted", lambda chance: chance.randbytes(8), run, (ValueError,), **bounds)
    return [each.what.partition(":")[0] for each in fuzz(target, 1, 3).findings]


def test_a_refusal_that_is_documented_is_no_finding() -> None:
    assert findings_of(lambda data: int("x")) == []


def test_an_input_without_end_is_found() -> None:
    def endless(data: bytes) -> None:
        while True:
            try:
                data += b""
            except Exception:
                continue

    assert findings_of(endless, seconds=0.05) == ["EndlessError"]


def test_an_input_that_takes_much_memory_is_found() -> None:
    kept = []
    assert findings_of(lambda data: kept.append(b"x" * (400 << 20)), megabytes=32) == ["WrongError"]


def test_an_error_that_a_parser_forgot_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(data: bytes, position: int, depth: int) -> None:
        raise KeyError(data[position])

    readers = (*primitives._READERS[:11], forgetful, *primitives._READERS[12:])
    monkeypatch.setattr(primitives, "_READERS", readers)
    outcome = fuzz(target_called("properties"), SEED, 200)
    assert {each.what.partition(":")[0] for each in outcome.findings} == {"KeyError"}
    (finding,) = outcome.findings
    with pytest.raises(KeyError):
        target_called("properties").run(made(target_called("properties"), SEED, finding.number))
    assert f"--seed {SEED} --first {finding.number} --inputs 1" in str(finding)


def test_a_length_that_nobody_checks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def trusting(data: bytes, position: int, length: int) -> tuple[bytes, int]:
        padded = data[position : position + length].ljust(min(length, 1 << 28), b"\0")
        return padded, position + max(0, length)

    monkeypatch.setattr(primitives, "_take_bytes", trusting)
    outcome = fuzz(target_called("properties"), SEED, 1000)
    assert any("MB of memory" in each.what for each in outcome.findings), told(outcome)


@pytest.mark.replaces
def test_memory_that_a_connection_keeps_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(session: OpenWireSession) -> None:
        session.closing = True
        session._broker.disconnect(session.connection)

    monkeypatch.setattr(OpenWireSession, "connection_lost", forgetful)
    outcome = fuzz(target_called("sessions"), SEED, 60)
    assert any("of frames, where messages have" in each.what for each in outcome.findings)


@pytest.mark.replaces
def test_a_connection_that_takes_others_with_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def spiteful(session: OpenWireSession, reason: str) -> None:
        for other in list(session._broker.connections.values()):
            session._broker.disconnect(other)
        session.closing = True

    monkeypatch.setattr(OpenWireSession, "_fail", spiteful)
    outcome = fuzz(target_called("sessions"), SEED, 60)
    assert any("the other client got 0 messages" in each.what for each in outcome.findings)


@pytest.mark.replaces
def test_a_frame_that_is_not_caught_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def uncaught(session: OpenWireSession, reason: str) -> None:
        raise MalformedMessageError(reason)

    monkeypatch.setattr(OpenWireSession, "_fail", uncaught)
    outcome = fuzz(target_called("sessions"), SEED, 60)
    assert any(each.what.startswith("MalformedMessageError") for each in outcome.findings)


def temporary_directories() -> set[str]:
    found = [*MEMORY.glob("lockkeeper-fuzz-*"), *Path("/tmp").glob("lockkeeper-fuzz-*")]
    return {str(path) for path in found}


@pytest.mark.parametrize("ended_by", [None, signal.SIGINT, signal.SIGTERM])
def test_a_run_tells_how_far_it_is_and_leaves_no_files(ended_by: signal.Signals | None) -> None:
    before = temporary_directories()
    program = Path(__file__).with_name("run_fuzz.py")
    command = [sys.executable, str(program), "--seed", "1", "--jobs", "2", "--target", "users"]
    command += ["--target", "files", "--inputs", "60" if ended_by is None else "1000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None and run.stdout.readline() == "seed 1\n"
        if ended_by is None:
            said = run.stdout.read()
            assert "60 inputs in " in said and "0 findings" in said
            assert run.wait(60) == 0
        else:
            deadline = time.monotonic() + 30
            while temporary_directories() == before and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(0.5)
            run.send_signal(ended_by)
            assert run.wait(30) != 0
    assert temporary_directories() == before
