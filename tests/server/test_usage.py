"""Limits of a resource in bytes: shares of the disk, shares of memory, what cannot be."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from lockkeeper.server import usage as usage_module
from lockkeeper.server.usage import measured, memory_allowance
from lockkeeper_api import BrokerSpec
from lockkeeper_api.system_usage import SystemUsage

GIBIBYTE = 1 << 30


def limits(
    directory: Path, usage: Mapping[str, object], file_bytes: str = "32Mi"
) -> tuple[int, int, int]:
    spec = BrokerSpec.model_validate({"systemUsage": usage, "journal": {"fileBytes": file_bytes}})
    found: SystemUsage = measured(spec, directory).system_usage
    return found.memory_usage.limit, found.store_usage.limit, found.temp_usage.limit


@pytest.fixture(autouse=True)
def allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process have 4 GiB."""
    monkeypatch.setattr(usage_module, "memory_allowance", lambda: 4 * GIBIBYTE)


def test_the_defaults_are_activemqs(tmp_path: Path) -> None:
    assert limits(tmp_path, {}) == (GIBIBYTE, 100 * GIBIBYTE, 50 * GIBIBYTE)


def test_shares_become_bytes(tmp_path: Path) -> None:
    disk = os.statvfs(tmp_path)
    total = disk.f_frsize * disk.f_blocks
    usage = {
        "memoryUsage": {"percentOfAllowance": 50},
        "storeUsage": {"percentLimit": 20},
        "tempUsage": {"percentLimit": 1},
    }
    assert limits(tmp_path, usage) == (2 * GIBIBYTE, total * 20 // 100, total // 100)


def test_memory_is_never_more_than_the_process_may_have(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory, _, _ = limits(tmp_path, {"memoryUsage": {"limit": "64Gi"}})
    assert memory == 4 * GIBIBYTE * 70 // 100
    assert "more than the process may have" in caplog.text


def test_a_journal_has_room_for_two_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    usage = {"storeUsage": {"limit": "1Mi"}}
    assert limits(tmp_path, usage, "64Ki")[1] == 1 << 20
    assert not caplog.text
    assert limits(tmp_path, usage)[1] == 64 << 20
    assert "less than two journal files" in caplog.text


def test_the_control_group_limits_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_module, "_CGROUP", tmp_path)
    everything = memory_allowance()
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_allowance() == everything
    (tmp_path / "memory.max").write_text("100000000\n")
    assert memory_allowance() == 100_000_000
