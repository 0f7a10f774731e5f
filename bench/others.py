"""Brokers that are measured: ours, and how each of the others is started.

ActiveMQ and RabbitMQ are Debian's packages, ActiveMQ 6 and Artemis come from Maven Central. All
may use 1 GB (RabbitMQ 3), have no JMX, and sync a persistent message before they answer its sender.
"""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
INTEROP = HERE.parent / "tests" / "interop"
sys.path[:0] = [str(INTEROP), str(INTEROP.parent)]

import brokers  # noqa: E402
import identities  # noqa: E402
import java_project  # noqa: E402
import rabbitmq  # noqa: E402
from ports import free_port  # noqa: E402
from wanted import Secure, Wanted  # noqa: E402

__all__ = ["BESIDE", "COMMANDS", "HERE", "OURS", "Measured", "add_checkout", "brokers",
           "end_by_signal", "identities", "java_project", "missing", "start",
           "version"]  # fmt: skip

OURS, UNRECORDED, RABBITMQ = "lockkeeper", "unrecorded", "rabbitmq"
"""Ours as it is, ours without its flight recorder, and RabbitMQ."""
ROCKETMQ = "rocketmq"
ROCKETMQ_SERVER = INTEROP / "rocketmq" / "server"
COMPILED = "lockkeeper-compiled"
COMPILED_PYTHON = HERE.parent / ".venv-compiled" / "bin" / "python"
"""Has the hot modules compiled; made by `make compiled`."""
BESIDE = "lockkeeper-beside"
"""Another version of ours, see `add_checkout`."""

ARTEMIS_VERSION = "2.40.0"
ARTEMIS = HERE / "java" / "downloads" / f"apache-artemis-{ARTEMIS_VERSION}"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
DOWNLOAD_SECONDS_MAX = 600
START_SECONDS_MAX = 240
SETTINGS = """\
<broker xmlns="http://activemq.apache.org/schema/core" schedulerSupport="{}">
  <transportConnectors>{}</transportConnectors>
</broker>
"""
PLAIN = """<transportConnector name="openwire" uri="tcp://127.0.0.1:${port}?${connector}"/>"""
TLS = """<transportConnector name="tls" uri="ssl://127.0.0.1:SECURE?${connector}"/>"""

STOMP = """<transportConnector name="stomp" uri="stomp://127.0.0.1:{}"/>"""


def _lockkeeper(directory: Path, port: int, wanted: Wanted) -> list[str]:
    return _ours(directory, port, wanted, {"metadata": {"name": "bench"}})


def _compiled(directory: Path, port: int, wanted: Wanted) -> list[str]:
    _, *command = _lockkeeper(directory, port, wanted)
    return [str(COMPILED_PYTHON), *command]


def _unrecorded(directory: Path, port: int, wanted: Wanted) -> list[str]:
    resource = yaml.safe_load((HERE / "unrecorded.yaml").read_text())
    return _ours(directory, port, wanted, resource)


def _ours(directory: Path, port: int, wanted: Wanted, resource: dict[str, Any]) -> list[str]:
    listeners: list[dict[str, Any]] = [{"name": "openwire", "port": port, **wanted.listener}]
    spec = {"listeners": listeners, **resource.get("spec", {}), **wanted.spec}
    spec["scheduler"] = {"enabled": wanted.scheduler}
    command = [*brokers.LOCKKEEPER, "broker", "--data", str(directory / "data")]
    if wanted.streams is not None:
        listeners.append({"name": "rocketmq", "protocol": "rocketmq", "port": wanted.streams})
    if wanted.secure is not None:
        tls = {"secretName": "certificate"}
        listeners.append({"name": "tls", "port": wanted.secure.port, "tls": tls})
        spec["access"] = {"anonymous": True}
        shown = directory / "secrets" / "tls" / "tls"
        shown.mkdir(parents=True)
        shutil.copy(wanted.secure.identity.certificate, shown / "tls.crt")
        shutil.copy(wanted.secure.identity.key, shown / "tls.key")
        command += ["--secrets", str(directory / "secrets")]
    kind = {"apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Broker"}
    file = directory / "broker.yaml"
    file.write_text(json.dumps({**kind, **resource, "spec": spec}))
    return [*command, "-f", str(file), "--admin", "127.0.0.1:0"]


def _activemq(directory: Path, port: int, wanted: Wanted) -> list[str]:
    connectors = PLAIN
    if wanted.secure is not None:
        connectors += TLS.replace("SECURE", str(wanted.secure.port))
    if wanted.stomp is not None:
        connectors += STOMP.format(wanted.stomp)
    settings = directory / "settings.xml"
    settings.write_text(SETTINGS.format(str(wanted.scheduler).lower(), connectors))
    name = str(settings.with_suffix(""))
    options = wanted.java_options
    return brokers.activemq_command(directory, port, configuration=name, java_options=options)


def _activemq6(directory: Path, port: int, wanted: Wanted) -> list[str]:
    class_path = java_project.build(INTEROP / "activemq6")
    more = [] if wanted.secure is None else [f"ssl://127.0.0.1:{wanted.secure.port}"]
    data, options = directory / "data", wanted.java_options
    return brokers.activemq6_command(class_path, port, data, *more, java_options=options)


def _rocketmq(directory: Path, port: int, wanted: Wanted) -> list[str]:
    """Return the command line of a name server at *port* and a broker, which syncs each send."""
    class_path = java_project.build(ROCKETMQ_SERVER)
    home = f"-Duser.home={directory}"
    memory = ["-Xms1G", "-Xmx1G", "-XX:MaxDirectMemorySize=1G"]
    ports = [str(port), str(free_port())]
    return [
        "java", *memory, "-Drmq.logback.configurationFile=none", home, "-cp", class_path,
        "dev.lockkeeper.rocketmq.Main", *ports, str(directory / "data"), "bench", "durable",
    ]  # fmt: skip


def _artemis(directory: Path, port: int, wanted: Wanted) -> list[str]:
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
    configuration = instance / "etc" / "broker.xml"
    _let_disk_be_full(configuration)
    if wanted.secure is not None:
        _add_acceptor(configuration, wanted.secure)
    return [str(instance / "bin" / "artemis"), "run"]


def _let_disk_be_full(configuration: Path) -> None:
    """Have Artemis take messages on a disk that is more than nine tenths full, as others do."""
    text, limit = configuration.read_text(), "<max-disk-usage>90<"
    if limit not in text:
        raise RuntimeError(f"{configuration} has no {limit}")
    configuration.write_text(text.replace(limit, "<max-disk-usage>-1<"))


def _add_acceptor(configuration: Path, secure: Secure) -> None:
    options = {
        "sslEnabled": "true",
        "keyStorePath": secure.identity.keystore,
        "keyStorePassword": identities.PASSWORD,
        "keyStoreType": "PKCS12",
        "protocols": "CORE,OPENWIRE",
    }
    told = ";".join(f"{name}={value}" for name, value in options.items())
    acceptor = f'<acceptor name="tls">tcp://127.0.0.1:{secure.port}?{told}</acceptor>'
    text = configuration.read_text()
    configuration.write_text(text.replace("</acceptors>", f"{acceptor}</acceptors>"))


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


COMMANDS: dict[str, Callable[[Path, int, Wanted], list[str]]] = {
    OURS: _lockkeeper,
    COMPILED: _compiled,
    UNRECORDED: _unrecorded,
    "activemq": _activemq,
    "activemq6": _activemq6,
    "artemis": _artemis,
    RABBITMQ: rabbitmq.command,
    ROCKETMQ: _rocketmq,
}


VERSIONS: dict[str, str] = {"artemis": ARTEMIS_VERSION, RABBITMQ: rabbitmq.version()}

# Artemis tells clients nothing of temporary queues, which ActiveMQ's client then takes for deleted.
URL_OPTIONS = {"artemis": "?jms.watchTopicAdvisories=false"}


def add_checkout(checkout: Path) -> None:
    """Make another version of Lockkeeper, in *checkout*, a kind of broker: `BESIDE`.

    It runs in its own .venv, if it has one, else with the libraries of this one. Raises ValueError.
    """
    package = checkout / "broker_image" / "lockkeeper"
    if not package.is_dir():
        raise ValueError(f"{checkout} is no checkout of Lockkeeper: it has no {package}")
    roots = (checkout / "broker_image", checkout / "crds")
    environment = ["env", f"PYTHONPATH={os.pathsep.join(str(each.resolve()) for each in roots)}"]
    own = checkout.resolve() / ".venv" / "bin" / "python"

    def command(directory: Path, port: int, wanted: Wanted) -> list[str]:
        python, *options = _lockkeeper(directory, port, wanted)
        return [*environment, str(own) if own.exists() else python, *options]

    COMMANDS[BESIDE] = command
    VERSIONS[BESIDE] = _commit(checkout)


def _commit(checkout: Path) -> str:
    query = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    found = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
    return found or "unknown"


def missing(kind: str) -> str | None:
    """Return why a broker of *kind* cannot be started on this machine, or None."""
    if kind == RABBITMQ:
        return rabbitmq.missing()
    if kind == COMPILED:
        return None if COMPILED_PYTHON.exists() else "run `make compiled` first"
    if kind in ("activemq6", "artemis", ROCKETMQ):
        return "there is no Java" if shutil.which("java") is None else None
    return brokers.missing(kind)


def version(kind: str) -> str:
    """Return the version of a broker, of Java or of Python."""
    if kind == "python":
        return platform.python_version()
    if kind == "java":
        told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
        return told.stderr.splitlines()[0]
    if kind == "activemq":
        query = ["dpkg-query", "--show", "--showformat=${Version}", kind]
        return subprocess.run(query, capture_output=True, text=True, check=False).stdout
    if kind == "activemq6":
        return _version_in(INTEROP / "activemq6" / "pom.xml", "activemq.version")
    if kind == ROCKETMQ:
        return _version_in(ROCKETMQ_SERVER / "pom.xml", "rocketmq.version")
    return VERSIONS.get(kind) or metadata.version("lockkeeper-mq")


def _version_in(pom: Path, name: str) -> str:
    return pom.read_text().partition(f"<{name}>")[2].partition("<")[0]


def end_by_signal() -> None:
    """Let SIGTERM end this process as Ctrl-C does, so that the brokers it has started end, too."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


@dataclass(frozen=True)
class Measured:
    """A broker that runs, and the addresses that clients dial."""

    running: brokers.RunningBroker
    url: str
    secure_url: str = ""
    stomp_url: str = ""
    stream_url: str = ""

    @property
    def kind(self) -> str:
        """One of COMMANDS."""
        return self.running.kind


def start(
    kind: str,
    directory: Path,
    identity: identities.Identity | None = None,
    scheduler: bool = False,
    tracer: Sequence[str] = (),
    listener: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    stomp: bool = False,
    streams: bool = False,
) -> Measured:
    """Start a broker that keeps its data below *directory*. Raises RuntimeError.

    With an *identity* it listens for TLS, too; a *tracer* is put before its command line.
    *listener* and *spec* are more fields of the resource, of a broker of ours. With *stomp*
    ActiveMQ listens for STOMP, too, with *streams* ours for clients of RocketMQ.
    """
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    secure = None if identity is None else Secure(free_port(), identity)
    stomp_port = free_port() if stomp and kind == "activemq" else None
    names = free_port() if streams and kind.startswith(OURS) else None
    wanted = Wanted(secure, scheduler, stomp_port, names, listener or {}, spec or {})
    command = [*tracer, *COMMANDS[kind](directory, port, wanted)]
    schemes = ("amqp", "amqps") if kind == RABBITMQ else ("tcp", "ssl")
    ports = (port, 0 if secure is None else secure.port)
    urls = [
        f"{scheme}://127.0.0.1:{at}{URL_OPTIONS.get(kind, '')}"
        for scheme, at in zip(schemes, ports, strict=True)
    ]
    urls.append("" if stomp_port is None else f"stomp://127.0.0.1:{stomp_port}")
    urls.append(f"rocketmq://127.0.0.1:{port if names is None else names}")
    process = rabbitmq.RabbitMQ if kind == RABBITMQ else brokers.RunningBroker
    return Measured(process(kind, port, directory, command, True, START_SECONDS_MAX), *urls)
