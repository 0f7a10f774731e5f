"""What a process that was killed held is given back before its successor in the pod is loaded."""

import subprocess
import sys
import time
from typing import Any

import pytest
from api_objects import LEASE_PATH, ApiObjects
from pods import NAMESPACE

from lockkeeper.server.cluster.lease_handover import ANSWER_SECONDS_MAX, give_back_inherited_lease
from lockkeeper.server.cluster.pod_environment import PodEnvironment, pod_environment

LEASE = LEASE_PATH.format(NAMESPACE, "orders")
SLOW_TO_LOAD = ("aiohttp", "pydantic", "yaml", "uvloop", "lockkeeper_api")


def where(api: ApiObjects, pod: str = "orders-0") -> PodEnvironment | None:
    return pod_environment(
        {
            "LOCKKEEPER_POD": pod,
            "LOCKKEEPER_POD_UID": f"uid-of-{pod}",
            "LOCKKEEPER_NAMESPACE": NAMESPACE,
            "LOCKKEEPER_API_SERVER": api.url,
            "LOCKKEEPER_SERVICE_ACCOUNT": "nowhere",
        }
    )


def let_hold(api: ApiObjects, holder: str) -> dict[str, Any]:
    lease = api.get(LEASE)
    lease["spec"] = {"holderIdentity": holder, "leaseTransitions": 7, "leaseDurationSeconds": 10}
    return api.put(LEASE, lease)


def test_the_lease_of_a_dead_process_of_this_pod_is_given_back(api: ApiObjects) -> None:
    let_hold(api, "orders-0_uid-of-orders-0")
    assert give_back_inherited_lease(where(api))
    found = api.get(LEASE)["spec"]
    assert (found["holderIdentity"], found["leaseTransitions"]) == ("", 7)


@pytest.mark.parametrize("holder", ["orders-1_uid-of-orders-1", "orders-0_another-uid", ""])
def test_that_of_others_is_left_alone(api: ApiObjects, holder: str) -> None:
    before = let_hold(api, holder)["metadata"]["resourceVersion"]
    assert not give_back_inherited_lease(where(api))
    assert api.get(LEASE)["metadata"]["resourceVersion"] == before


def test_whatever_is_missing_keeps_nobody_from_starting(api: ApiObjects) -> None:
    assert not give_back_inherited_lease(None)
    assert not give_back_inherited_lease(pod_environment({"LOCKKEEPER_POD": "orders-0"}))
    assert not give_back_inherited_lease(where(api, "nameless"))
    del api.objects[LEASE]
    assert not give_back_inherited_lease(where(api))
    api.cut()
    began = time.monotonic()
    assert not give_back_inherited_lease(where(api))
    assert time.monotonic() - began < ANSWER_SECONDS_MAX + 2


def test_it_needs_no_library_that_takes_time_to_load() -> None:
    program = (
        "import sys, lockkeeper.server.cluster.lease_handover;"
        "import lockkeeper.server.cluster.pod_environment;"
        f"print([name for name in {SLOW_TO_LOAD} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
