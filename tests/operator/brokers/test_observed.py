from typing import Any

import pytest

from lockkeeper_operator.brokers.observed import pod_of
from lockkeeper_operator.kubernetes.caches.packing import trimmed
from lockkeeper_operator.polling.report import Report


def manifest(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "b-0",
            "uid": "u",
            "labels": {"lockkeeper.dev/role": "master"},
            "annotations": {"lockkeeper.dev/revision": "r"},
        },
        "status": status,
    }


READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def test_a_pod_is_what_its_status_and_its_broker_say() -> None:
    found = pod_of(manifest(**READY), Report("standby", takes_over=True))
    assert (found.name, found.uid, found.revision) == ("b-0", "u", "r")
    assert (found.role, found.ready, found.takes_over, found.leads) == (
        "standby", True, True, False,
    )  # fmt: skip


def test_the_label_counts_only_when_the_broker_says_nothing() -> None:
    assert pod_of(manifest(**READY)).leads
    assert not pod_of(manifest(**READY), Report("standby")).leads


def test_services_lead_to_a_ready_pod_that_is_labelled_and_does_not_end() -> None:
    labelled = manifest(**READY)
    assert pod_of(labelled, Report("standby")).reached
    assert not pod_of(manifest(), Report("master")).reached
    ends = {**labelled, "metadata": {**labelled["metadata"], "deletionTimestamp": "now"}}
    assert not pod_of(ends, Report("master")).reached
    labelled["metadata"]["labels"]["lockkeeper.dev/role"] = "standby"
    assert not pod_of(labelled, Report("master")).reached


def test_a_pod_that_ends_takes_nothing_over() -> None:
    ends = manifest(**READY)
    ends["metadata"]["deletionTimestamp"] = "now"
    found = pod_of(ends, Report("standby", takes_over=True))
    assert (found.terminating, found.takes_over) == (True, False)


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Failed"}, "Failed"),
        ({"conditions": [{"type": "PodScheduled", "status": "False"}]}, "Unschedulable"),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
            "CrashLoopBackOff",
        ),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}, ""),
        ({"containerStatuses": [{"state": {"running": {}}}]}, ""),
        (
            {
                "phase": "Pending",
                "initContainerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
            },
            "CrashLoopBackOff",
        ),
        ({}, ""),
    ],
)
def test_a_pod_that_cannot_run_says_why(status: dict[str, Any], trouble: str) -> None:
    found = pod_of(manifest(**status))
    assert (found.trouble, found.broken, found.ready) == (trouble, bool(trouble), False)
    assert pod_of(trimmed({"kind": "Pod", **manifest(**status)})) == found


@pytest.mark.parametrize(("phase", "begun"), [("Pending", False), ("Running", True)])
def test_a_pod_has_begun_once_its_containers_run(phase: str, begun: bool) -> None:
    assert pod_of(trimmed({"kind": "Pod", **manifest(phase=phase)})).begun is begun
