"""Brokers that are measured: ours, ActiveMQ of the Debian package, ActiveMQ 6 and Artemis.

What Debian does not have comes from Maven Central. All have a heap of 1 GB at most, no JMX, and a
journal that is synced before a persistent send is answered.
"""

import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
INTEROP = HERE.parent / "tests" / "interop"
sys.path.insert(0, str(INTEROP))

import brokers  # noqa: E402
import java_project  # noqa: E402

__all__ = ["COMMANDS", "HERE", "OURS", "URL_OPTIONS", "brokers", "java_project", "missing", "start"]

OURS, UNRECORDED = "lockkeeper", "unrecorded"
"""Ours as it is, and without its flight recorder."""

ARTEMIS_VERSION = "2.40.0"
ARTEMIS = HERE / "java" / "downloads" / f"apache-artemis-{ARTEMIS_VERSION}"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
DOWNLOAD_SECONDS_MAX = 600


def _unrecorded(directory: Path, port: int) -> list[str]:
    return brokers.lockkeeper_command(directory, port, str(HERE / UNRECORDED))


def _activemq6(directory: Path, port: int) -> list[str]:
    class_path = java_project.build(INTEROP / "activemq6")
    return brokers.activemq6_command(class_path, port, directory / "data")


def _artemis(directory: Path, port: int) -> list[str]:
    """Return the command line of an Artemis that was made in *directory*, with its defaults."""
    _download_artemis()
    instance = directory / "instance"
    protocols = ["amqp", "hornetq", "mqtt", "stomp"]
    done = subprocess.run(
        [
            ARTEMIS / "bin" / "artemis", "create", instance,
            "--silent", "--no-web", "--allow-anonymous", "--user", "bench", "--password", "bench",
            *(f"--no-{protocol}-acceptor" for protocol in protocols),
            "--host", "127.0.0.1", "--default-port", str(port), "--java-options", "-Xmx1G",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"artemis create failed:\n{done.stdout}{done.stderr}")
    return [str(instance / "bin" / "artemis"), "run"]


def _download_artemis() -> None:
    if ARTEMIS.is_dir():
        return
    where = ARTEMIS.parent
    artifact = f"org.apache.activemq:apache-artemis:{ARTEMIS_VERSION}:tar.gz:bin"
    done = subprocess.run(
        ["mvn", "-q", "-B", COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={where}"],
        capture_output=True, text=True, check=False, timeout=DOWNLOAD_SECONDS_MAX,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"Artemis could not be downloaded:\n{done.stdout[-2000:]}")
    with tarfile.open(where / f"apache-artemis-{ARTEMIS_VERSION}-bin.tar.gz") as archive:
        archive.extractall(where, filter="data")


COMMANDS: dict[str, Callable[[Path, int], list[str]]] = {
    OURS: brokers.lockkeeper_command,
    UNRECORDED: _unrecorded,
    "activemq": brokers.activemq_command,
    "activemq6": _activemq6,
    "artemis": _artemis,
}


# Artemis tells clients nothing of temporary queues, which ActiveMQ's client then takes for deleted.
URL_OPTIONS = {"artemis": "?jms.watchTopicAdvisories=false"}


def missing(kind: str) -> str | None:
    """Return why a broker of *kind* cannot be started on this machine, or None."""
    if kind in ("activemq6", "artemis"):
        return "there is no Java" if shutil.which("java") is None else None
    return brokers.missing(kind)


def start(kind: str, directory: Path) -> brokers.RunningBroker:
    """Start a broker that keeps its data below *directory*. Raises RuntimeError."""
    directory.mkdir(parents=True)
    port = brokers.free_port()
    return brokers.RunningBroker(kind, port, directory, COMMANDS[kind](directory, port))
