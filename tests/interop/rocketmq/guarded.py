"""A broker that asks who its clients are, over TLS, and Java clients that it asks."""

import shutil
import subprocess
from pathlib import Path

import brokers
import rocketmq_scenarios
from certificates import Authority
from ports import free_port
from reference import BROKER_NAME

from lockkeeper_api.passwords import hashed

HERE = Path(__file__).parent
PASSWORDS = {"anna": "tea", "rita": "milk", "walt": "rum", "nora": "water"}
NOTHING = "-"
MAIN = "dev.lockkeeper.rocketmq.Guarded"


def start_guarded(
    directory: Path, authority: Authority, clients: str = "Ignored"
) -> brokers.RunningBroker:
    """Start a broker whose certificate *authority* has issued.

    *clients* says whether clients must show one, too, as `clientCertificates` of a listener.
    """
    secrets = directory / "secrets"
    tls = secrets / "tls" / "rocketmq"
    tls.mkdir(parents=True)
    certificate, key = authority.issue("broker")
    for source, name in (
        (certificate, "tls.crt"),
        (key, "tls.key"),
        (authority.certificate, "ca.crt"),
    ):
        shutil.copy(source, tls / name)
    salt = b"of the tests only"
    lines = (f"{name}:{hashed(password, salt)}\n" for name, password in PASSWORDS.items())
    (secrets / "users").write_text("".join(lines))
    resource = directory / "guarded.yaml"
    resource.write_text((HERE / "guarded.yaml").read_text().replace("Ignored", clients))
    port = free_port()
    command = [*brokers.LOCKKEEPER, "broker", "--data", str(directory / "data")]
    command += ["-f", str(resource), "--secrets", str(secrets), "--admin", "127.0.0.1:0"]
    command += ["--listen", f"rocketmq://127.0.0.1:{port}"]
    return brokers.RunningBroker("lockkeeper", port, directory, command)


class JavaClients:
    """Java clients of one line that use the broker at *port*, one after the other."""

    def __init__(self, version: str, port: int, directory: Path, *options: str) -> None:
        """*options* are Java's: RocketMQ's client is told about TLS by system properties."""
        directory.mkdir(parents=True, exist_ok=True)
        home = f"-Duser.home={directory}"
        command = [*rocketmq_scenarios.JAVA, home, *options, "-cp"]
        command += [rocketmq_scenarios.class_path(version), MAIN]
        with (directory / "clients.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*command, f"127.0.0.1:{port}", BROKER_NAME],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip

    def act(
        self,
        action: str,
        topic: str,
        user: str = NOTHING,
        secret: str = NOTHING,
        token: str | None = None,
    ) -> str:
        """Return what a client sees that does one thing; its token is the secret as a rule."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        words = (action, topic, user, secret, secret if token is None else token)
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("told "):
                return line.removeprefix("told ").rstrip("\n")
        raise RuntimeError("the Java program has ended")

    def stop(self) -> None:
        """End the program."""
        self._process.kill()
        self._process.wait()


def trusting(authority: Authority) -> tuple[str, ...]:
    """Return the options of clients that speak TLS with brokers that *authority* vouches for.

    Without the second one RocketMQ's client trusts everybody, whatever the others say.
    """
    return (
        "-Dtls.enable=true",
        "-Dtls.test.mode.enable=false",
        "-Dtls.client.authServer=true",
        f"-Dtls.client.trustCertPath={authority.certificate}",
    )
