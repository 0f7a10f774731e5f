"""A JournalAnalysis under test: its resource, the pods of its runs, what they left."""

import io
import subprocess
import tarfile
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
from brokers import broker
from kube import Manifest, Namespace, condition, kubectl_command, wait_until

API_VERSION = "lockkeeper.dev/v1alpha1"
NAME_LABEL, ROLE_LABEL = "lockkeeper.dev/analysis", "lockkeeper.dev/spark-role"
DRIVER, EXECUTOR = "driver", "executor"
RUN_SECONDS_MAX = 240.0
RESULTS = "/var/lib/lockkeeper-results"
SMALL = {"memory": "512Mi"}
"""Of these two nodes' memory a test takes little."""
DRIVER_RESOURCES = {"memory": "1Gi"}
"""As by default; less was not tried since reports leave the plans of facts behind."""
TWO: dict[str, Any] = {
    "executors": {"instances": 2, "resources": SMALL},
    # Two such nodes would have room for one that wants a whole core.
    "sparkConf": {"spark.kubernetes.executor.request.cores": "100m"},
}
"""Two executors, of whatever engine."""
ITS_SHARE = {"resources": {"requests": {"cpu": "300m"}}}
"""Of a node's cores for a Broker: without it, those who read would have nearly all of them."""


def analysis(name: str, **spec: Any) -> Manifest:
    """Return an analysis with small pods and *spec*."""
    return {
        "apiVersion": API_VERSION,
        "kind": "JournalAnalysis",
        "metadata": {"name": name},
        "spec": {"resources": DRIVER_RESOURCES, **spec},
    }


def single(name: str) -> Manifest:
    """Return a Broker of one pod whose journal may be read on every node: one is too small."""
    storage = {"size": "1Gi", "accessModes": ["ReadWriteMany"]}
    return broker(name, replicas=1, storage=storage, **ITS_SHARE)


def stored(files: dict[str, bytes], queue: str) -> int:
    """Return how many messages of a queue the report of totals in *files* counts."""
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(files["totals.parquet"])).to_pylist()
    return sum(row["enqueued"] for row in rows if row["destination"] == queue)


@dataclass(frozen=True, slots=True)
class Analysis:
    """One analysis in a namespace."""

    namespace: Namespace
    name: str

    def status(self) -> Manifest:
        """Return the status, empty where there is none or no analysis."""
        resource = self.namespace.get("lkj", self.name)
        found: Manifest = (resource or {}).get("status", {})
        return found

    def condition(self, kind: str) -> str:
        """Return the status of a condition, of the present generation."""
        return condition(self.namespace.get("lkj", self.name), kind)

    def history(self, state: str) -> list[Manifest]:
        """Return the runs of the history with that *state*, the latest first."""
        return [each for each in self.status().get("history", ()) if each["state"] == state]

    def wait_state(self, state: str, seconds: float = RUN_SECONDS_MAX) -> float:
        """Wait until the status has that *state*; returns the seconds that it took."""
        return wait_until(
            f"analysis {self.name} is {state}",
            lambda: self.status().get("state") == state,
            seconds,
        )

    def pods(self, role: str = "") -> list[Manifest]:
        """Return the pods of its runs, those with a *role*."""
        selector = f"{NAME_LABEL}={self.name}" + (f",{ROLE_LABEL}={role}" if role else "")
        return self.namespace.items("pods", selector)

    def running(self, role: str) -> list[Manifest]:
        """Return the pods with a *role* that are at work."""
        return [pod for pod in self.pods(role) if pod["status"]["phase"] == "Running"]

    def results(self, run: str) -> dict[str, bytes]:
        """Return the files of a run, out of the pod that serves them."""
        deployment = f"deployment/{self.name}-page"
        self.namespace.kubectl("rollout", "status", deployment, "--timeout=60s")
        words = ("exec", deployment, "--", "tar", "-cf", "-", "-C", f"{RESULTS}/{run}", ".")
        done = subprocess.run(
            [*kubectl_command(), "--namespace", self.namespace.name, *words],
            capture_output=True, check=True,
        )  # fmt: skip
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            files = {each.name: archive.extractfile(each) for each in archive if each.isfile()}
            return {name.removeprefix("./"): file.read() for name, file in files.items() if file}

    def page(self) -> str:
        """Return the latest page, as a browser gets it through the Service."""
        where = f"namespaces/{self.namespace.name}/services/{self.name}-page:http/proxy/"
        return self.namespace.kubectl("get", "--raw", f"/api/v1/{where}")
