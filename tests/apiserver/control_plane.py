"""A real etcd and a real kube-apiserver on free ports of 127.0.0.1; nothing else of Kubernetes."""

import json
import os
import shutil
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from ports import free_port

TOKEN = "token-of-the-tests"
START_SECONDS = 60.0
STOP_SECONDS = 10.0
CACHED_KUBE = Path.home() / ".cache" / "lk-cluster" / "kube"
ADMISSION_OFF = "ServiceAccount"
"""Nobody makes the accounts' tokens here, and pods would wait for them."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """How the programs are called, as the beginnings of command lines; kubectl may be absent."""

    etcd: tuple[str, ...]
    apiserver: tuple[str, ...]
    kubectl: tuple[str, ...]


def find_binaries() -> Binaries | str:
    """Return the binaries, or why there are none.

    LOCKKEEPER_KUBE names the one binary that `e2e/cluster/up.sh` builds, which is looked for in
    its cache, too; KUBEBUILDER_ASSETS a directory with etcd, kube-apiserver and kubectl.
    """
    kube = Path(os.environ.get("LOCKKEEPER_KUBE", CACHED_KUBE))
    if os.access(kube, os.X_OK):
        return Binaries(*((str(kube), name) for name in ("etcd", "apiserver", "kubectl")))
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        directory = Path(assets)
        kubectl = directory / "kubectl"
        found = str(kubectl) if kubectl.exists() else shutil.which("kubectl") or ""
        paths = (directory / "etcd", directory / "kube-apiserver")
        absent = [str(path) for path in paths if not os.access(path, os.X_OK)]
        if absent:
            return f"KUBEBUILDER_ASSETS: no {' and no '.join(absent)}"
        return Binaries((str(paths[0]),), (str(paths[1]),), (found,) if found else ())
    return "needs etcd and kube-apiserver: LOCKKEEPER_KUBE or KUBEBUILDER_ASSETS says where"


@dataclass(slots=True)
class ControlPlane:
    """One etcd, one API server. All who show TOKEN may do everything.

    No controllers and no kubelets run: nobody makes pods of a StatefulSet, binds claims, collects
    garbage or empties a namespace that ends. A test that needs one of them plays its part.
    """

    binaries: Binaries
    directory: Path
    port: int = field(default_factory=free_port)
    etcd_port: int = field(default_factory=free_port)
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where the API server is."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig for it."""
        return self.directory / "kubeconfig.json"

    @property
    def authority(self) -> Path:
        """The certificate by which it is known."""
        return self.directory / "certificates" / "apiserver.crt"

    def __enter__(self) -> Self:
        """Start both, and wait until they answer."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._write_keys()
        try:
            self.start_etcd()
            self.start_apiserver()
        except BaseException:
            self.__exit__()
            raise
        self.write_kubeconfig(self.kubeconfig, self.url, self.authority)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop both."""
        for name in ("apiserver", "etcd"):
            self.stop(name)

    def start_etcd(self) -> None:
        """Start etcd; what it had is there again."""
        peer = f"http://127.0.0.1:{free_port()}"
        client = f"http://127.0.0.1:{self.etcd_port}"
        self._start(
            "etcd",
            *self.binaries.etcd,
            *("--data-dir", str(self.directory / "etcd"), "--unsafe-no-fsync"),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}", "--log-level", "error"),
        )

    def start_apiserver(self) -> None:
        """Start the API server, and wait until it is ready."""
        at = self.directory
        self._start(
            "apiserver",
            *self.binaries.apiserver,
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            *(f"--secure-port={self.port}", "--bind-address=127.0.0.1"),
            f"--cert-dir={at / 'certificates'}",
            f"--token-auth-file={at / 'tokens.csv'}",
            f"--service-account-key-file={at / 'accounts.pub'}",
            f"--service-account-signing-key-file={at / 'accounts.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--allow-privileged=true",
            *("--authorization-mode=RBAC", f"--disable-admission-plugins={ADMISSION_OFF}"),
        )
        self._wait_until_ready()

    def stop(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop `etcd` or `apiserver`, if it runs."""
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kubectl(self, *arguments: str, text: str = "", check: bool = True) -> str:
        """Return what kubectl says to *arguments*; *text* is its standard input."""
        command = [*self.binaries.kubectl, f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout if check else done.stdout + done.stderr

    def write_kubeconfig(self, path: Path, url: str, authority: Path | None = None) -> None:
        """Write a kubeconfig that leads to *url*, the server's own or that of a proxy."""
        cluster = {"server": url}
        if authority is not None:
            cluster["certificate-authority"] = str(authority)
        name = "tests"
        context = {"cluster": name, "user": name, "namespace": "default"}
        configuration: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": {"token": TOKEN}}],
            "contexts": [{"name": name, "context": context}],
            "current-context": name,
        }
        path.write_text(json.dumps(configuration), "utf-8")

    def _write_keys(self) -> None:
        (self.directory / "tokens.csv").write_text(f'{TOKEN},tests,1,"system:masters"\n', "utf-8")
        key, public = str(self.directory / "accounts.key"), str(self.directory / "accounts.pub")
        for command in (
            ("genrsa", "-out", key, "2048"),
            ("rsa", "-in", key, "-pubout", "-out", public),
        ):
            subprocess.run(("openssl", *command), check=True, capture_output=True)

    def _start(self, name: str, *command: str) -> None:
        with (self.directory / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.directory
            )

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + START_SECONDS
        while not self._is_ready():
            ended = [name for name, process in self._processes.items() if process.poll()]
            if ended or time.monotonic() > end:
                log = (self.directory / f"{(ended or ['apiserver'])[0]}.log").read_text("utf-8")
                raise AssertionError(f"the control plane does not come up:\n{log[-3000:]}")
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        """Return whether the server and the namespace `default` are there."""
        if not self.authority.exists():
            return False
        context = ssl.create_default_context(cafile=str(self.authority))
        headers = {"Authorization": f"Bearer {TOKEN}"}
        for path in ("/readyz", "/api/v1/namespaces/default"):
            request = urllib.request.Request(self.url + path, headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=2, context=context):
                    pass
            except (OSError, urllib.error.URLError):
                return False
        return True
