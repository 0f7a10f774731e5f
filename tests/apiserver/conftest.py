"""Tests against a real API server; skipped, with the reason, where there is none."""

import gc
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from control_plane import ControlPlane, find_binaries

DEFINITIONS = Path(__file__).parents[2] / "crds"
_numbers = itertools.count(1)


def pytest_sessionfinish() -> None:
    """Let go of what loops of operators have left, before others import anything.

    Python 3.11 fails when garbage whose end is logged is found while it compiles.
    """
    gc.collect()


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One etcd and API server for the whole session, with the definitions of our resources.

    No controllers and no kubelets run (see ControlPlane). Each test takes a namespace of its own.
    """
    found = find_binaries()
    if isinstance(found, str):
        pytest.skip(found)
    with ControlPlane(found, tmp_path_factory.mktemp("control-plane")) as running:
        for path in sorted(DEFINITIONS.glob("*.yaml")):
            running.kubectl("apply", "-f", str(path))
        running.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        yield running


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """A namespace that only this test uses."""
    name = f"test-{next(_numbers)}"
    control_plane.kubectl("create", "namespace", name)
    return name
