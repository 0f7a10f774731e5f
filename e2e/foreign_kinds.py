"""Kinds of others' operators: those that the cluster knows, or that a cluster of our own gets."""

import os
import subprocess
from pathlib import Path

import pytest
from kube import Namespace

CLUSTER = Path(__file__).parent / "cluster"
BUILD_SECONDS_MAX = 1500
TLS_ROUTES = "tlsroutes.gateway.networking.k8s.io"
CERTIFICATES = "certificates.cert-manager.io"
SPARK_APPLICATIONS = "sparkapplications.sparkoperator.k8s.io"


def need_tls_routes(namespace: Namespace) -> None:
    """See to it that the cluster knows the Gateway API's TLSRoute; else skip the test."""
    if not _knows(namespace, TLS_ROUTES):
        namespace.kubectl("apply", "-f", _on_cluster("published.sh", "tlsroutes"))


def need_cert_manager(namespace: Namespace) -> None:
    """See to it that cert-manager runs; else skip the test."""
    if not _knows(namespace, CERTIFICATES):
        _on_cluster("cert-manager.sh")


def need_spark_operator(namespace: Namespace) -> None:
    """See to it that Kubeflow's Spark operator runs; else skip the test."""
    if not _knows(namespace, SPARK_APPLICATIONS):
        _on_cluster("spark-operator.sh")


def _knows(namespace: Namespace, definition: str) -> bool:
    return bool(namespace.kubectl("get", "crd", definition, "-o", "name", "--ignore-not-found"))


def _on_cluster(script: str, *arguments: str) -> str:
    """Return what a script of e2e/cluster prints."""
    if os.environ.get("LOCKKEEPER_E2E_NODES") != "cluster":
        pytest.skip(f"the cluster lacks what {script} brings to one of e2e/cluster")
    done = subprocess.run(
        [str(CLUSTER / script), *arguments], capture_output=True, text=True, check=False,
        timeout=BUILD_SECONDS_MAX,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"{script}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout.strip()
