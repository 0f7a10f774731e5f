"""Every command in the README and in docs/cli.md does what it says there."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_support import COMMAND, role_at, stop, wait_until
from ports import free_ports

PROJECT = Path(__file__).parents[2]
README, DOCUMENT = PROJECT / "README.md", PROJECT / "docs" / "cli.md"
SAMPLES = Path("docs", "samples")
CLIENT_PORT, ADMIN_PORT = "61616", "8161"
"""What the document and the sample say; here they are free ports."""


def conversations(document: Path = DOCUMENT) -> list[tuple[str, str]]:
    """Return a document's commands with what they print, in order."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", document.read_text("utf-8"), re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def matches(expected: str, printed: str) -> bool:
    """Tell whether *printed* is what the document shows, whatever the width of columns."""
    pattern = re.sub(r"(\\?\s)+", r"\\s+", re.escape(expected.strip()))
    return re.fullmatch(pattern.replace("…", ".*?"), printed.strip(), re.S) is not None


class Shell:
    """Runs commands as a reader would, in a folder with the samples."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        port, admin, second = map(str, free_ports(3))
        self._ports = {CLIENT_PORT: port, "8162": second, ADMIN_PORT: admin}
        self._environment = {
            **os.environ,
            "PATH": f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}",
            "LOCKKEEPER_URL": f"tcp://127.0.0.1:{port}",
            "LOCKKEEPER_ADMIN": f"http://127.0.0.1:{admin}",
        }
        self.admins = [f"http://127.0.0.1:{each}" for each in (admin, second)]
        shutil.copytree(PROJECT / SAMPLES, folder / SAMPLES)
        sample = folder / SAMPLES / "broker.yaml"
        text = self.with_ports(sample.read_text("utf-8"))
        sample.write_text(text.replace("spec:\n", f"spec:\n  admin:\n    port: {admin}\n", 1))

    def with_ports(self, text: str) -> str:
        """Return *text* with the ports of this run."""
        for documented, ours in self._ports.items():
            text = text.replace(documented, ours)
        return text

    def start(self, command: str) -> "subprocess.Popen[bytes]":
        """Start a command that goes on; what it prints goes to `up.log`."""
        with (self.folder / "up.log").open("wb") as log:
            return subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.folder, env=self._environment, stdout=log, stderr=log,
            )  # fmt: skip

    def run(self, command: str) -> str:
        """Return what a command prints, errors included."""
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self._environment, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
        )  # fmt: skip
        return done.stdout


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell in which the document's first command runs already."""
    shell = Shell(tmp_path)
    up = shell.start(conversations()[0][0])
    wait_until(lambda: [role_at(admin) for admin in shell.admins] == ["master", "standby"], up)
    yield shell
    stop(up)


def test_every_command_prints_what_the_document_says(shell: Shell) -> None:
    (first, greeting), *rest = conversations()
    assert first.startswith("lockkeeper up")
    assert len(rest) > 15
    log = (shell.folder / "up.log").read_text()
    for expected in shell.with_ports(greeting).splitlines():
        assert any(matches(expected, line) for line in log.splitlines()), f"{expected}\n{log}"
    for command, output in rest:
        printed = shell.run(command)
        assert matches(shell.with_ports(output), printed), f"$ {command}\n{printed}"


def test_the_commands_of_the_readme_work(shell: Shell) -> None:
    installed = ".venv/bin/"
    commands = [command for command, _ in conversations(README) if command.startswith(installed)]
    up, *rest = (command.removeprefix(installed) for command in commands)
    assert up == conversations()[0][0]
    assert rest.pop() == "lockkeeper broker --data /var/lib/activemq/kahadb"
    assert len(rest) > 5
    for command in rest:
        printed = shell.run(f"{command} || echo it failed")
        assert "it failed" not in printed, f"$ {command}\n{printed}"


def test_what_is_printed_otherwise_is_noticed() -> None:
    assert matches("ID:…  two\n", "ID:1:2   two")
    assert not matches("ID:…  two\n", "ID:1:2  three")
    assert not matches("two\n", "two\nthree\n")
