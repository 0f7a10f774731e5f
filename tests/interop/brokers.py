"""Real broker processes on loopback: ours, and the ActiveMQ of the Debian package.

ActiveMQ 6 is a small program of ours around what Maven fetches, see activemq6/.

Both are started the same way and are used through a RunningBroker, by the interoperability suite
and by the benchmark, so that whatever is asked of one can be asked of the other. A configuration
is a pair of files in configurations/: NAME.yaml for ours, and the same in NAME.xml for ActiveMQ.
"""

import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

import java_project
from ports import free_port

LOCKKEEPER = [sys.executable, "-m", "lockkeeper.cli.main"]
ACTIVEMQ_HOME = Path("/usr/share/activemq")
ACTIVEMQ_CONFIGURATION = Path(__file__).with_name("activemq.xml")
ACTIVEMQ_BROKER = "{http://activemq.apache.org/schema/core}broker"
ACTIVEMQ6 = Path(__file__).with_name("activemq6")
CONFIGURATIONS = Path(__file__).with_name("configurations")
START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 30
STARTS_SOON = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Options of a Java that lives for a short while: it compiles less, with fewer threads."""

# What ActiveMQ logs when its journal or a client's command is not as it should be.
_COMPLAINT = re.compile(r"corrupt|exception|kaha.*(?:WARN|ERROR)|(?:WARN|ERROR).*kaha", re.I)


@dataclass
class RunningBroker:
    """A broker process that listens on loopback; it can be stopped, killed and started again.

    With *waits* false a start is not waited for: a standby does not listen yet.
    """

    kind: str
    port: int
    directory: Path
    command: list[str]
    waits: bool = True
    start_seconds_max: float = START_SECONDS_MAX
    process: "subprocess.Popen[bytes]" = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    @property
    def url(self) -> str:
        """The address that a JMS client dials."""
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """The file with everything that the broker printed."""
        return self.directory / "broker.log"

    def start(self) -> None:
        """Start the process and wait, unless told otherwise, until it accepts connections."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdout=log, stderr=subprocess.STDOUT, cwd=self.directory
            )
        if self.waits:
            self.wait()

    def wait(self) -> None:
        """Wait until the process accepts connections. Raises RuntimeError when it ends instead."""
        deadline = time.monotonic() + self.start_seconds_max
        while not accepts(self.port):
            ended = self.process.poll()
            if ended is not None or time.monotonic() > deadline:
                self.kill()
                tail = self.log.read_text(errors="replace")[-3000:]
                raise RuntimeError(f"{self.kind} did not start (exit code {ended}):\n{tail}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ask the process to stop, and kill it when it does not."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill the process as a crash would."""
        self.process.kill()
        self.process.wait()


def complaints(broker: RunningBroker) -> list[str]:
    """Return the lines in which ActiveMQ complained, but for clients while it was being stopped."""
    lines = broker.log.read_text(errors="replace").splitlines()
    return [each for each in lines if _COMPLAINT.search(each) and "BrokerStopped" not in each]


def accepts(port: int) -> bool:
    """Tell whether something on loopback accepts connections at *port*, and keeps them.

    A broker that is still starting may have its port, and reset whoever comes.
    """
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex(("127.0.0.1", port)) != 0:
            return False
        probe.settimeout(0.2)
        try:
            return probe.recv(1) != b""
        except TimeoutError:
            # It waits for its client to speak first.
            return True
        except OSError:
            return False


def lockkeeper_command(directory: Path, port: int, configuration: str | None = None) -> list[str]:
    """Return the command line of our broker with its journal below *directory*."""
    command = [*LOCKKEEPER, "broker", "--data", str(directory / "data")]
    if configuration is not None:
        command += ["-f", str(CONFIGURATIONS / f"{configuration}.yaml")]
    return [*command, "--listen", f"openwire://127.0.0.1:{port}", "--admin", "127.0.0.1:0"]


def activemq_command(
    directory: Path,
    port: int,
    data: Path | None = None,
    journal_bytes: int = 33_554_432,
    cleanup_ms: int = 30_000,
    configuration: str | None = None,
    java_options: Sequence[str] = STARTS_SOON,
) -> list[str]:
    """Return the command line of ActiveMQ with its journal in `kahadb` below *data*.

    Without *data* that is `data` below *directory*, which has everything else.
    """
    settings = {
        "port": port,
        "data": data or directory / "data",
        "directory": directory,
        "journal_bytes": journal_bytes,
        "cleanup_ms": cleanup_ms,
        "connector": "maximumConnections=1000&amp;wireFormat.maxFrameSize=104857600",
    }
    directory.mkdir(parents=True, exist_ok=True)
    written = directory / "activemq.xml"
    written.write_text(Template(_activemq_template(configuration)).substitute(settings))
    properties = {
        "activemq.home": ACTIVEMQ_HOME,
        "activemq.base": directory,
        "activemq.data": directory,
        "java.io.tmpdir": directory,
    }
    return [
        "java",
        "-Xms64M",
        "-Xmx1G",
        *java_options,
        *(f"-D{name}={value}" for name, value in properties.items()),
        "-jar",
        str(ACTIVEMQ_HOME / "bin" / "activemq.jar"),
        "start",
        f"xbean:file:{written}",
    ]


def activemq6_command(
    class_path: str,
    port: int,
    data: Path,
    *addresses: str,
    java_options: Sequence[str] = STARTS_SOON,
) -> list[str]:
    """Return the command line of ActiveMQ 6 with its journal in `kahadb` below *data*.

    It listens at *addresses*, too.
    """
    arguments = [str(port), str(data / "kahadb"), *addresses]
    return _activemq6_program(class_path, java_options, arguments)


def configured_activemq6_command(written: Path) -> list[str]:
    """Return the command line of ActiveMQ 6 with the configuration in *written*, an activemq.xml.

    Raises RuntimeError where Maven cannot build it.
    """
    class_path = java_project.build(ACTIVEMQ6)
    return _activemq6_program(class_path, STARTS_SOON, [f"xbean:file:{written}"])


def _activemq6_program(
    class_path: str, java_options: Sequence[str], arguments: Sequence[str]
) -> list[str]:
    command = ["java", "-Xms64M", "-Xmx1G", *java_options, "-cp", class_path]
    return [*command, "dev.lockkeeper.activemq6.Main", *arguments]


def _built_activemq6_command(
    directory: Path, port: int, configuration: str | None = None
) -> list[str]:
    """Return the command line of ActiveMQ 6, built unless it is; `time` is all it can be told."""
    java, *rest = activemq6_command(java_project.build(ACTIVEMQ6), port, directory / "data")
    if configuration not in (None, "time"):
        raise ValueError(f"ActiveMQ 6 has no configuration {configuration}")
    return [java, f"-DschedulerSupport={str(configuration == 'time').lower()}", *rest]


def _activemq_template(configuration: str | None) -> str:
    """Return ActiveMQ's stock settings with those of *configuration* in their place."""
    if configuration is None:
        return ACTIVEMQ_CONFIGURATION.read_text()
    wanted = ElementTree.parse(CONFIGURATIONS / f"{configuration}.xml").getroot()
    template = ElementTree.parse(ACTIVEMQ_CONFIGURATION).getroot()
    broker = template.find(ACTIVEMQ_BROKER)
    assert broker is not None
    broker.attrib |= wanted.attrib
    children = {child.tag: child for child in broker} | {child.tag: child for child in wanted}
    # ActiveMQ's schema wants them in alphabetical order.
    broker[:] = [children[tag] for tag in sorted(children)]
    return ElementTree.tostring(template, encoding="unicode")


COMMANDS: dict[str, Callable[..., list[str]]] = {
    "lockkeeper": lockkeeper_command,
    "activemq": activemq_command,
    "activemq6": _built_activemq6_command,
}


def missing(kind: str) -> str | None:
    """Return why a broker of *kind* cannot be started on this machine, or None."""
    if kind == "activemq":
        if shutil.which("java") is None:
            return "there is no Java"
        if not (ACTIVEMQ_HOME / "bin" / "activemq.jar").exists():
            return "Debian's package activemq is not installed"
    if kind == "activemq6":
        return java_project.missing() or _unbuilt(ACTIVEMQ6)
    return None


def _unbuilt(project: Path) -> str | None:
    try:
        java_project.build(project)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return f"Maven cannot build {project.name}: {error}"
    return None


def start_broker(kind: str, directory: Path, configuration: str | None = None) -> RunningBroker:
    """Start a broker of *kind*, `lockkeeper` or `activemq`, that keeps its data below *directory*.

    Raises RuntimeError with the end of its log when it does not come up.
    """
    port = free_port()
    command = COMMANDS[kind](directory, port, configuration=configuration)
    return RunningBroker(kind, port, directory, command)
