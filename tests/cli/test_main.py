import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from lockkeeper import speedups
from lockkeeper.cli.errors import CommandError, explain
from lockkeeper.cli.main import main
from lockkeeper.cli.resources import with_addresses
from lockkeeper_api import default_broker

COMMAND = Path(sys.executable).with_name("lockkeeper")


def test_the_installed_command_tells_its_version() -> None:
    result = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True)
    kind = " (compiled)" if speedups.running.finder else ""
    assert result.stdout == f"lockkeeper {version('lockkeeper-mq')}{kind}\n"


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "journal" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["jurnal"], ["journal", "verify"], ["--nope"]])
def test_misuse_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "text", "code"),
    [
        (CommandError("the port is taken"), "the port is taken", 1),
        (CommandError("that makes no sense", 2), "that makes no sense", 2),
        (FileNotFoundError(2, "No such file or directory", "x.yaml"),
         "x.yaml: No such file or directory", 1),
        (OSError("the host is unknown"), "the host is unknown", 1),
        (KeyboardInterrupt(), "interrupted", 130),
    ],
)  # fmt: skip
def test_known_errors_become_one_line(error: BaseException, text: str, code: int) -> None:
    assert explain(error) == (text, code)


def test_an_unknown_error_is_called_a_defect() -> None:
    text, code = explain(ZeroDivisionError("division by zero"))
    assert text.startswith("this is a defect of Lockkeeper: ZeroDivisionError: division by zero")
    assert code == 1


def test_output_that_nobody_reads_is_no_traceback() -> None:
    golden = Path(__file__).parents[1] / "golden" / "kahadb" / "amq-5.17.2-crash"
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run(
        [COMMAND, "journal", "dump", "--json", golden],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert result.returncode == 1
    assert result.stderr == ""


@pytest.mark.parametrize("address", ["openwire://[:x]:1", f"openwire://{'h' * 254}:1", "openwire:"])
def test_a_listener_that_cannot_be_is_misuse(address: str) -> None:
    with pytest.raises(CommandError) as caught:
        with_addresses(default_broker("orders"), [address], None)
    assert caught.value.code == 2


@pytest.mark.parametrize("address", ["[:x]:1", f"{'h' * 254}:1", "\udcff:1"])
def test_an_admin_address_that_cannot_be_is_misuse(address: str) -> None:
    with pytest.raises(CommandError) as caught:
        with_addresses(default_broker("orders"), [], address)
    assert caught.value.code == 2
