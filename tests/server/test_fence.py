"""A fenced broker lets go of everything, stays, and comes back when the fence is taken away."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest
from api_objects import ApiObjects
from pods import Pod, wait_until
from ports import free_port

StartPod = Callable[..., Pod]


def order(pod: Pod, said: object) -> object:
    request = urllib.request.Request(
        f"{pod.admin}/api/v1/fence",
        json.dumps(said).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.load(answer)


def test_a_fenced_master_lets_a_standby_take_over_and_stands_by_when_it_is_let_out(
    api: ApiObjects, start_pod: StartPod
) -> None:
    port = free_port()
    first = start_pod(number=0, api=api.url, port=port).wait_for("master")
    second = start_pod(number=1, api=api.url, port=port).wait_for("standby")
    assert order(first, {"fenced": True}) == {"fenced": True}
    first.wait_for("fenced")
    second.wait_for("master")
    assert second.status()["epoch"] == 2
    assert first.status()["takesOver"] is False
    assert order(first, {"fenced": True}) == {"fenced": True}, "saying it again changes nothing"
    order(first, {"fenced": False})
    first.wait_for("standby")
    assert second.stop() == 0
    first.wait_for("master")
    assert first.status()["epoch"] == 3
    assert first.stop() == 0


def test_a_fenced_standby_takes_nothing_over(api: ApiObjects, start_pod: StartPod) -> None:
    port = free_port()
    master = start_pod(number=0, api=api.url, port=port).wait_for("master")
    standby = start_pod(number=1, api=api.url, port=port).wait_for("standby")
    order(standby, {"fenced": True})
    standby.wait_for("fenced")
    assert master.stop() == 0
    with pytest.raises(AssertionError, match="did not come to that"):
        wait_until(lambda: standby.status()["role"] != "fenced", 3)
    assert standby.stop() == 0


def test_a_process_that_starts_finds_the_fence_beside_its_configuration(
    start_pod: StartPod,
) -> None:
    pod = start_pod().wait_for("master")
    pod.stop()
    (pod.home / "fenced").write_text("orders-7\norders-0\n")
    pod.start()
    pod.wait_for("fenced")
    order(pod, {"fenced": False})
    pod.wait_for("master")


def test_what_is_no_order_is_refused(start_pod: StartPod) -> None:
    pod = start_pod().wait_for("master")
    for said in ({}, {"fenced": "yes"}, ["fenced"], None):
        with pytest.raises(urllib.error.HTTPError, match="400") as refused:
            order(pod, said)
        assert "true or false" in json.load(refused.value)["error"]
    assert pod.status()["role"] == "master"
