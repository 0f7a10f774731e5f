"""RabbitMQ of the Debian package, as a node of our own: never the one that the system runs.

Everything of it is below one directory, cookie and plugins too; it listens on loopback only, and
has an epmd of its own, at a port of its own.
"""

import shutil
import subprocess
from pathlib import Path

import brokers
from ports import free_port
from wanted import Wanted

HOMES = Path("/usr/lib/rabbitmq/lib")
CONFIGURATION = """\
listeners.tcp.1 = 127.0.0.1:{port}
vm_memory_high_watermark.absolute = 3GiB
log.console.level = warning
"""
TLS = """\
listeners.ssl.1 = 127.0.0.1:{port}
ssl_options.cacertfile = {identity.authority}
ssl_options.certfile = {identity.certificate}
ssl_options.keyfile = {identity.key}
ssl_options.verify = verify_none
"""
LOOPBACK = "-kernel inet_dist_use_interface {127,0,0,1}"
EPMD_PORT = "ERL_EPMD_PORT="


def missing() -> str | None:
    """Return why there can be no RabbitMQ on this machine, or None."""
    if not _homes() or shutil.which("epmd") is None:
        return "Debian's package rabbitmq-server is not installed"
    return None


def _homes() -> list[Path]:
    return sorted(HOMES.glob("rabbitmq_server-*"))


def version() -> str:
    """Return the version that would be started."""
    return _homes()[-1].name.removeprefix("rabbitmq_server-") if _homes() else "none"


def command(directory: Path, port: int, wanted: Wanted) -> list[str]:
    """Return the command line of a node with everything below *directory*."""
    text = CONFIGURATION.format(port=port)
    if wanted.secure is not None:
        text += TLS.format(port=wanted.secure.port, identity=wanted.secure.identity)
    (directory / "rabbitmq.conf").write_text(text)
    (directory / "enabled_plugins").write_text("[].\n")
    settings = {
        "HOME": directory,
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"bench-{port}@localhost",
        "RABBITMQ_DIST_PORT": free_port(),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": LOOPBACK,
        "RABBITMQ_CONF_ENV_FILE": directory / "none",
        "RABBITMQ_CONFIG_FILE": directory / "rabbitmq.conf",
        "RABBITMQ_ENABLED_PLUGINS_FILE": directory / "enabled_plugins",
        "RABBITMQ_MNESIA_BASE": directory / "data",
        "RABBITMQ_LOG_BASE": directory / "log",
        "RABBITMQ_LOGS": "-",
        # The shell becomes the node, and so gets its signals.
        "RUNNING_UNDER_SYSTEMD": "true",
    }
    # Debian's own script of this name changes to another user and another directory.
    script = _homes()[-1] / "sbin" / "rabbitmq-server"
    environment = [f"{name}={value}" for name, value in settings.items()]
    return ["env", f"{EPMD_PORT}{free_port()}", *environment, str(script)]


class RabbitMQ(brokers.RunningBroker):
    """A node, and its epmd, which ends with it."""

    def start(self) -> None:
        """Start the epmd, then the node."""
        ports = [each for each in self.command if each.startswith(EPMD_PORT)]
        self._epmd = subprocess.Popen(
            ["epmd", "-port", ports[0].removeprefix(EPMD_PORT), "-address", "127.0.0.1"]
        )
        super().start()

    def stop(self) -> None:
        """Ask the node to stop, then end its epmd."""
        super().stop()
        self._end_epmd()

    def kill(self) -> None:
        """Kill both."""
        super().kill()
        self._end_epmd()

    def _end_epmd(self) -> None:
        self._epmd.kill()
        self._epmd.wait()
