"""Brokers of RocketMQ's protocol on loopback: ours, and a real one from Maven Central's jars."""

from collections.abc import Callable
from pathlib import Path

import java_project
from brokers import LOCKKEEPER, STARTS_SOON, RunningBroker
from ports import free_port

HERE = Path(__file__).parent
SERVER = HERE / "server"
BROKER_NAME = "interop"
# Name server and broker are many threads, and take their buffers outside of the heap.
MEMORY = ("-Xms128M", "-Xmx512M", "-XX:MaxDirectMemorySize=512M")
QUIET = "-Drmq.logback.configurationFile=none"
START_SECONDS_MAX = 300


def start_rocketmq(directory: Path) -> RunningBroker:
    """Start a RocketMQ with its data below *directory*; `port` is that of its name server.

    Raises RuntimeError when Maven cannot build it, or with the end of its log when it does not
    come up.
    """
    class_path = java_project.build(SERVER)
    names, port = free_port(), free_port()
    home = f"-Duser.home={directory}"
    arguments = [str(names), str(port), str(directory / "data"), BROKER_NAME]
    command = ["java", *MEMORY, *STARTS_SOON, QUIET, home, "-cp", class_path]
    running = RunningBroker(
        "rocketmq",
        port,
        directory,
        [*command, "dev.lockkeeper.rocketmq.Main", *arguments],
        start_seconds_max=START_SECONDS_MAX,
    )
    running.port = names
    return running


def start_lockkeeper(directory: Path) -> RunningBroker:
    """Start ours with its data below *directory*; name server and broker are one listener."""
    port = free_port()
    command = lockkeeper_command(directory / "data", port)
    return RunningBroker("lockkeeper", port, directory, command)


def lockkeeper_command(data: Path, port: int) -> list[str]:
    """Return the command line of ours that listens at *port*."""
    command = [*LOCKKEEPER, "broker", "--data", str(data), "-f", str(HERE / "broker.yaml")]
    return [*command, "--listen", f"rocketmq://127.0.0.1:{port}", "--admin", "127.0.0.1:0"]


BROKERS: dict[str, Callable[[Path], RunningBroker]] = {
    "lockkeeper": start_lockkeeper,
    "rocketmq": start_rocketmq,
}
