"""Wheels as users get them: the client alone, then with the broker, a message sent and received."""

import socket
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

INSTALL_SECONDS, COMMAND_SECONDS = 300, 60
BODY = "hello"
INSTALLED = """
from importlib.metadata import distributions
print(*sorted(each.name for each in distributions()))
"""


class SmokeError(Exception):
    """The wheel does not do what it should."""


def try_wheels(wheels: Sequence[Path], version: str) -> str:
    """Return what was seen of good wheels. Raises SmokeError or SubprocessError.

    *version* is what `lockkeeper --version` is to say of them, of which the first is ours.
    """
    with TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "venv", with_pip=False, symlinks=True)
        python, command = home / "venv/bin/python", str(home / "venv/bin/lockkeeper")
        install(python, *map(str, wheels))
        expect(f"{' '.join(names(wheels))}\n", printed(home, str(python), "-I", "-c", INSTALLED))
        printed(home, str(python), "-I", "-c", "import lockkeeper.client.listener")
        expect(f"lockkeeper {version}\n", printed(home, command, "--version"))
        expect_refusal(home, "[cli]", command, "send", "ORDERS", BODY)
        install(python, f"{wheels[0]}[cli]")
        expect_refusal(home, "[broker]", command, "broker", "--data", str(home / "data"))
        expect_refusal(home, "[operator]", str(home / "venv/bin/lockkeeper-operator"))
        install(python, f"{wheels[0]}[broker]")
        with broker(home, command) as url:
            printed(home, command, "send", "ORDERS", BODY, "--url", url)
            expect(f"{BODY}\n", printed(home, command, "receive", "ORDERS", "--url", url))
    return f"lockkeeper {version} is installed, sends and receives."


def names(wheels: Sequence[Path]) -> list[str]:
    """Return the sorted names of the distributions in wheels."""
    return sorted(each.name.partition("-")[0].replace("_", "-") for each in wheels)


def install(python: Path, *packages: str) -> None:
    """Install packages into the environment of *python*."""
    subprocess.run(
        [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, *packages],
        check=True, timeout=INSTALL_SECONDS,
    )  # fmt: skip


def expect_refusal(home: Path, extra: str, *command: str) -> None:
    """Raise SmokeError unless a command fails and names the *extra* that it needs."""
    done = subprocess.run(
        command, cwd=home, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS
    )
    wanted = f"pip install 'lockkeeper-mq{extra}'\n"
    if done.returncode != 1 or not done.stderr.endswith(wanted):
        raise SmokeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr!r}")


@contextmanager
def broker(home: Path, command: str) -> Iterator[str]:
    """Run a broker below *home* and yield the URL that waits until it serves."""
    port, admin = free_ports()
    process = subprocess.Popen(
        [
            command, "broker", "--data", str(home / "data"),
            "--listen", f"openwire://127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}",
        ],
        cwd=home,
    )  # fmt: skip
    try:
        yield f"failover:(tcp://127.0.0.1:{port})"
    finally:
        process.terminate()
        try:
            code = process.wait(COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    if code:
        raise SmokeError(f"the broker ended with code {code}")


def free_ports() -> tuple[int, int]:
    """Return two ports of loopback that nobody listens on."""
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        return one.getsockname()[1], other.getsockname()[1]


def printed(home: Path, *command: str) -> str:
    """Return what a command prints."""
    done = subprocess.run(
        command, cwd=home, stdout=subprocess.PIPE, text=True, check=True, timeout=COMMAND_SECONDS
    )
    return done.stdout


def expect(wanted: str, found: str) -> None:
    """Raise SmokeError when *found* is not what was *wanted*."""
    if found != wanted:
        raise SmokeError(f"printed was {found!r} instead of {wanted!r}")
