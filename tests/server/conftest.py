"""What the tests of broker processes share."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "interop"),
    str(Path(__file__).parents[2] / "bench"),
]

from api_objects import ApiObjects  # noqa: E402
from pods import NAMESPACE, Pod  # noqa: E402


@pytest.fixture
def api() -> Iterator[ApiObjects]:
    """An API server with the pods and the Lease of a Broker called orders."""
    api = ApiObjects()
    for number in range(3):
        api.add_pod(NAMESPACE, f"orders-{number}", f"uid-of-orders-{number}")
    api.add_lease(NAMESPACE, "orders")
    yield api
    api.close()


@pytest.fixture
def start_pod(tmp_path: Path) -> Iterator[Callable[..., Pod]]:
    """A function that starts a broker as a pod does; all end with the test."""
    started: list[Pod] = []

    def start(number: int = 0, **settings: object) -> Pod:
        home = tmp_path / f"pod-{number}-{len(started)}"
        pod = Pod(f"orders-{number}", home, tmp_path / "data", **settings)  # type: ignore[arg-type]
        started.append(pod)
        return pod

    yield start
    for pod in started:
        pod.kill()
