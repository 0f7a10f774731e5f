"""What a broker cannot run on, it says in a line; it exits with 1 or 2 and changes nothing."""

import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

LOCKKEEPER = [sys.executable, "-m", "lockkeeper.cli.main"]
GOLDEN = Path(__file__).parents[1] / "golden" / "kahadb" / "amq-5.17.2-clean"
END_SECONDS_MAX = 30
FAILED, MISUSED = 1, 2
NO_PORT, ANY_PORT = "openwire://127.0.0.1:0", "127.0.0.1:0"
RESOURCE = """\
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata:
  name: orders
spec:
"""


def refused(*arguments: str, code: int) -> str:
    """Run `lockkeeper broker`, which must fail with *code*; return the one line that says why."""
    done = subprocess.run(
        [*LOCKKEEPER, "broker", *arguments],
        capture_output=True,
        text=True,
        timeout=END_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr and "defect" not in done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("lockkeeper: ")]
    assert len(said) == 1, done.stderr
    return said[0].removeprefix("lockkeeper: ")


def refused_at(data: Path, listen: str = NO_PORT, admin: str = ANY_PORT) -> str:
    """Run a broker on *data*, which must fail and leave everything there as it was."""
    before = _checksums(data)
    arguments = ("--data", str(data), "--listen", listen, "--admin", admin)
    text = refused(*arguments, code=FAILED)
    assert _checksums(data) == before
    return text


def refused_for(resource: str, tmp_path: Path) -> str:
    """Run a broker as *resource* says, which must be a mistake; return what is said of it."""
    file = tmp_path / "broker.yaml"
    file.write_text(resource)
    text = refused("-f", str(file), "--data", str(tmp_path / "data"), code=MISUSED)
    assert not (tmp_path / "data").exists()
    return text


def _checksums(directory: Path) -> dict[str, bytes]:
    """Return what is in a directory, but for the lock, into which every master writes."""
    if not directory.is_dir():
        return {}
    return {
        path.name: hashlib.sha256(path.read_bytes()).digest()
        for path in directory.iterdir()
        if path.name != "lock"
    }


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A directory that ActiveMQ has written."""
    return shutil.copytree(GOLDEN, tmp_path / "data")


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port that another program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def unwritable(tmp_path: Path) -> Iterator[Path]:
    """A directory that nobody may write to."""
    directory = tmp_path / "unwritable"
    directory.mkdir()
    if os.geteuid() != 0:
        directory.chmod(0o500)
        yield directory
        directory.chmod(0o700)
        return
    mount = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(directory)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"root can write everywhere here: {done.stderr.strip()}")
    yield directory
    subprocess.run(["umount", str(directory)], check=True)


def test_a_client_port_in_use(journal: Path, taken_port: int) -> None:
    text = refused_at(journal, listen=f"openwire://127.0.0.1:{taken_port}")
    assert f"127.0.0.1:{taken_port} is in use by another program" in text
    assert "--listen" in text


def test_an_admin_port_in_use(journal: Path, taken_port: int) -> None:
    text = refused_at(journal, admin=f"127.0.0.1:{taken_port}")
    assert f"127.0.0.1:{taken_port} is in use by another program" in text
    assert "--admin" in text


def test_a_directory_of_something_else(tmp_path: Path) -> None:
    directory = tmp_path / "photos"
    directory.mkdir()
    (directory / "beach.jpg").write_bytes(b"sun")
    text = refused_at(directory)
    assert text.startswith(f"{directory}: not a journal's directory")
    assert "beach.jpg" in text
    assert [path.name for path in directory.iterdir()] == ["beach.jpg"]


def test_a_directory_that_cannot_be_written_to(unwritable: Path) -> None:
    assert refused_at(unwritable).startswith(f"cannot lock {unwritable / 'lock'}: ")


def test_a_directory_that_cannot_be_made(unwritable: Path) -> None:
    directory = unwritable / "data"
    assert refused_at(directory).startswith(f"{directory}: ")


def test_a_directory_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    directory = tmp_path / "file" / "data"
    assert refused_at(directory).startswith(f"{directory}: Not a directory")


def test_a_damaged_journal(journal: Path) -> None:
    file = journal / "db-4.log"
    data = bytearray(file.read_bytes())
    data[20_000] ^= 1
    file.write_bytes(data)
    assert re.search(rf"{file.name}: .*offset \d+", refused_at(journal))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("  replica: 2\n", "spec.replica"),
        ("  replicas: 0\n", "spec.replicas"),
        ("  listeners: [{name: a, port: 70000}]\n", "spec.listeners[0].port"),
        ("  journal: {fileBytes: 12 parsecs}\n", "spec.journal.fileBytes"),
        ("  destinationPolicies: [{match: 'A..B'}]\n", "spec.destinationPolicies[0].match"),
    ],
)
def test_a_resource_with_a_mistake(spec: str, expected: str, tmp_path: Path) -> None:
    text = refused_for(RESOURCE + spec, tmp_path)
    assert "broker.yaml" in text and expected in text


def test_a_file_that_is_no_yaml(tmp_path: Path) -> None:
    text = refused_for(RESOURCE + "  listeners: [\n", tmp_path)
    assert re.search(r"broker\.yaml.*line \d+", text)


def test_a_file_without_a_broker(tmp_path: Path) -> None:
    assert "broker.yaml: no Broker" in refused_for("", tmp_path)


def test_two_brokers_in_a_file(tmp_path: Path) -> None:
    other = RESOURCE.replace("orders", "invoices")
    resource = f"{RESOURCE}  replicas: 1\n---\n{other}  replicas: 1\n"
    assert "orders, invoices" in refused_for(resource, tmp_path)


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "openwire://127.0.0.1", "61616"])
def test_an_address_to_listen_on_that_is_none(address: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    text = refused("--data", str(data), "--listen", address, code=MISUSED)
    assert address in text
    assert not data.exists()
