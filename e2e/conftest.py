"""What every end-to-end test has: a cluster, the operator in it, a namespace of its own.

`make e2e` builds the images, brings them into the cluster, and says in LOCKKEEPER_E2E_BROKER_IMAGE,
LOCKKEEPER_E2E_OPERATOR_IMAGE and LOCKKEEPER_E2E_ANALYTICS_IMAGE what they are called there.
KUBECONFIG says which cluster.
"""

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from brokers import Brokers
from clients import Clients
from installation import SYSTEM, Installation
from kube import Namespace
from nodes import Nodes, nodes_here
from signals import Signals

RESULTS = Path(__file__).parent / "results"
NAME_CHARACTERS_MAX = 40
TOOLS = "lockkeeper-e2e-tools"


def environment(name: str) -> str:
    """Return a variable that `make e2e` sets."""
    value = os.environ.get(name)
    if not value:
        pytest.skip(f"{name} is not set: run `make e2e`")
    return value


@pytest.fixture(scope="session")
def broker_image() -> str:
    """The broker's image, as nodes know it."""
    environment("KUBECONFIG")
    return environment("LOCKKEEPER_E2E_BROKER_IMAGE")


@pytest.fixture(scope="session")
def installation(broker_image: str) -> Installation:
    """The operator, installed by the chart."""
    image = environment("LOCKKEEPER_E2E_OPERATOR_IMAGE")
    analytics_image = os.environ.get("LOCKKEEPER_E2E_ANALYTICS_IMAGE", "")
    found = Installation(image, broker_image, f"r{time.time():.0f}", analytics_image)
    found.install()
    return found


@pytest.fixture(scope="session")
def signals(broker_image: str) -> Signals:
    """Who can kill the processes of brokers."""
    created = made_namespace(TOOLS, standard="privileged")
    sender = Signals(created)
    sender.start(broker_image)
    return sender


@pytest.fixture
def nodes() -> Nodes:
    """Nodes that can lose power and network."""
    found = nodes_here()
    if found is None:
        pytest.skip("LOCKKEEPER_E2E_NODES does not say how nodes can be cut off")
    return found


@pytest.fixture
def namespace(installation: Installation, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """A namespace that only this test uses, under the restricted standard."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())
    created = made_namespace(f"e2e-{name[:NAME_CHARACTERS_MAX]}".strip("-"), "restricted")
    failures = request.session.testsfailed
    yield created
    if request.session.testsfailed > failures:
        keep_evidence(created)
    created.kubectl("delete", "namespace", created.name, "--timeout=90s", "--ignore-not-found")


@pytest.fixture
def brokers(namespace: Namespace) -> Brokers:
    """The Broker of a test; it is for the test to apply it."""
    return Brokers(namespace, "orders")


@pytest.fixture
def clients(namespace: Namespace, broker_image: str) -> Clients:
    """Clients of that Broker, through its Service."""
    return Clients(namespace, broker_image, "orders")


def made_namespace(name: str, standard: str) -> Namespace:
    """Return a new namespace with a Pod Security Standard."""
    created = Namespace(name)
    label = {"pod-security.kubernetes.io/enforce": standard}
    metadata = {"name": name, "labels": label}
    created.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    return created


def keep_evidence(namespace: Namespace) -> None:
    """Write down what there is when a test fails."""
    folder = RESULTS / namespace.name
    folder.mkdir(parents=True, exist_ok=True)
    kinds = "brokers,destinations,lkn,lkj,all,pvc,leases,configmaps,events"
    files = {
        "objects.txt": ("get", kinds, "-o", "wide", "--show-labels"),
        "objects.yaml": ("get", "brokers,destinations,lkn,lkj,jobs,pods,leases", "-o", "yaml"),
    }
    for name, arguments in files.items():
        (folder / name).write_text(namespace.kubectl(*arguments, check=False), "utf-8")
    for place in (namespace, Namespace(SYSTEM)):
        for pod in place.kubectl("get", "pods", "-o", "name", check=False).split():
            for suffix, more in (("", ()), (".previous", ("--previous",))):
                log = place.kubectl("logs", pod, *more, check=False)
                if log:
                    (folder / f"{pod.replace('/', '-')}{suffix}.log").write_text(log, "utf-8")
