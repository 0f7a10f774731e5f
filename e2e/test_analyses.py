"""JournalAnalyses on real nodes: Spark's driver and executors, schedules, failures, the end."""

import time

import pytest
from analyses import DRIVER, EXECUTOR, ITS_SHARE, TWO, Analysis, analysis, single, stored
from brokers import Brokers, broker
from clients import Clients, assert_nothing_lost
from conftest import environment
from kube import Manifest, Namespace, wait_until

MINUTE = 60.0
QUEUE = "ANALYSED"
JOURNAL = "/var/lib/lockkeeper"


@pytest.fixture(autouse=True)
def _image() -> None:
    """Skip where there is no image of drivers."""
    environment("LOCKKEEPER_E2E_ANALYTICS_IMAGE")


def claim(name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "64Mi"}},
        },
    }


def is_read_only(pod: Manifest) -> bool:
    """Tell whether a pod has the journal's claim, and nothing that could write to it."""
    volumes = [each for each in pod["spec"]["volumes"] if each["name"] == "journal"]
    mounts = [
        mount
        for container in pod["spec"]["containers"]
        for mount in container["volumeMounts"]
        if mount["name"] == "journal"
    ]
    return (
        [each["persistentVolumeClaim"].get("readOnly") for each in volumes] == [True]
        and [each.get("readOnly") for each in mounts] == [True]
    )  # fmt: skip


def restarts(pods: list[Manifest]) -> int:
    return sum(each["restartCount"] for pod in pods for each in pod["status"]["containerStatuses"])


@pytest.mark.timeout(900)
def test_two_executors_read_a_live_journal_and_nobody_notices(
    brokers: Brokers, clients: Clients
) -> None:
    namespace = brokers.namespace
    namespace.apply(broker(brokers.name, **ITS_SHARE))
    brokers.wait_settled()
    before = brokers.pod_uids()
    sender = clients.start("send", QUEUE)
    wait_until("there is something to read", lambda: len(sender.notes()) > 200)
    sent_before = len(sender.notes())
    namespace.apply(analysis("live", source={"broker": brokers.name}, engine="native", **TWO))
    live = Analysis(namespace, "live")
    wait_until("two executors run", lambda: len(live.running(EXECUTOR)) == 2, 180.0)
    workers = [*live.running(EXECUTOR), *live.running(DRIVER)]
    assert len({pod["metadata"]["uid"] for pod in workers}) == 3
    assert all(map(is_read_only, workers))
    for pod in workers:
        name = pod["metadata"]["name"]
        attempt = f"touch {JOURNAL}/x && echo written || echo refused"
        said = namespace.kubectl("exec", name, "--", "sh", "-c", attempt)
        assert said.strip() == "refused"
    steps = set()

    def has_ended() -> bool:
        status = live.status()
        steps.add(status.get("progressText", ""))
        return live.condition("Succeeded") == "True" or live.condition("Failed") == "True"

    print(f"the run ended after {wait_until('it has ended', has_ended, 480.0):.0f} s more")
    sent_after = len(sender.notes())
    status = live.status()
    assert live.condition("Succeeded") == "True", status
    assert status["engine"] == "native"
    assert any("journal file" in step for step in steps), steps
    (run,) = status["history"]
    assert status["result"] == run["result"] == f"{status['page']}{run['name']}/"
    files = live.results(run["name"])
    assert sent_before <= stored(files, QUEUE) <= sent_after
    # On its way through the API server's proxy a page's links change.
    assert QUEUE in live.page()
    assert QUEUE in files["index.html"].decode()
    wait_until("the executors are gone", lambda: not live.pods(EXECUTOR))
    # Nobody who reads takes or leaves anything.
    sender.end()
    receiver = clients.start("receive", QUEUE)
    assert assert_nothing_lost(sender, receiver) >= sent_before
    assert brokers.pod_uids() == before
    assert restarts(brokers.pods()) == 0
    # It goes when it is told to have been long enough, and takes along what is its own.
    namespace.patch("lkj", "live", {"spec": {"ttlSecondsAfterFinished": 1}})
    wait_until("the analysis is gone", lambda: namespace.get("lkj", "live") is None, 90.0)
    wait_until("its results are gone", lambda: namespace.get("pvc", "live-page") is None, 90.0)


@pytest.mark.timeout(600)
def test_a_schedule_makes_runs_until_it_is_suspended(brokers: Brokers, clients: Clients) -> None:
    namespace = brokers.namespace
    namespace.apply(single(brokers.name), claim("reports"))
    brokers.wait_ready()
    sender = clients.start("send", QUEUE)
    wait_until("there is something to read", lambda: len(sender.notes()) > 50)
    sender.end()
    schedule = {"cron": "* * * * *", "successfulHistoryLimit": 1}
    namespace.apply(
        analysis(
            "regular",
            source={"broker": brokers.name},
            engine="local",
            reports=["totals"],
            schedule=schedule,
            output={"claim": {"name": "reports", "path": "daily"}},
        )
    )
    regular = Analysis(namespace, "regular")
    seen: set[str] = set()

    def ran_twice() -> bool:
        seen.update(each["name"] for each in regular.history("Succeeded"))
        return len(seen) > 1

    wait_until("it ran twice", ran_twice, 300.0)
    assert [each["result"] for each in regular.history("Succeeded")] == [
        f"claim reports:/daily/{each['name']}" for each in regular.history("Succeeded")
    ]
    namespace.patch("lkj", "regular", {"spec": {"suspend": True}})

    def jobs() -> list[Manifest]:
        return namespace.items("jobs", "lockkeeper.dev/analysis=regular")

    def is_at_rest() -> bool:
        cron = namespace.get("cronjob", "regular")
        return cron is not None and cron["spec"]["suspend"] and not cron["status"].get("active")

    wait_until("it is suspended and nothing runs", is_at_rest, 120.0)
    kept = {job["metadata"]["name"] for job in jobs()}
    wait_until("one run is kept", lambda: len(jobs()) == 1, 60.0)
    time.sleep(MINUTE + 5)
    assert {job["metadata"]["name"] for job in jobs()} <= kept
    assert len(regular.history("Succeeded")) == 1


@pytest.mark.timeout(400)
def test_a_run_that_fails_is_tried_again_and_ends_with_its_last_words(
    namespace: Namespace, broker_image: str
) -> None:
    namespace.apply(
        claim("empty"),
        analysis(
            "hopeless",
            source={"claim": {"name": "empty"}},
            engine="local",
            reports=["totals"],
            backoffLimit=1,
            output={"claim": {"name": "reports"}},
        ),
        claim("reports"),
    )
    hopeless = Analysis(namespace, "hopeless")
    print(f"failed for good after {hopeless.wait_state('Failed'):.0f} s")
    assert hopeless.condition("Failed") == "True"
    assert len(hopeless.pods(DRIVER)) == 2, "the first attempt and another one"
    (run,) = hopeless.history("Failed")
    assert run["message"].splitlines()[-1].startswith(f"lockkeeper: {JOURNAL}")
    namespace.patch("lkj", "hopeless", {"spec": {"ttlSecondsAfterFinished": 0}})
    wait_until("it is gone", lambda: namespace.get("lkj", "hopeless") is None, 90.0)
    assert namespace.get("pvc", "reports") is not None


@pytest.mark.timeout(400)
def test_deleting_an_analysis_ends_its_pods(brokers: Brokers) -> None:
    namespace = brokers.namespace
    namespace.apply(single(brokers.name))
    brokers.wait_ready()
    namespace.apply(analysis("cancelled", source={"broker": brokers.name}, engine="native", **TWO))
    cancelled = Analysis(namespace, "cancelled")
    wait_until("an executor runs", lambda: cancelled.running(EXECUTOR), 180.0)
    namespace.delete("lkj", "cancelled")
    wait_until("driver and executors are gone", lambda: not cancelled.pods(), 90.0)
    left = "jobs,services,configmaps,serviceaccounts,roles,rolebindings,pvc"
    assert namespace.items(left, "lockkeeper.dev/analysis=cancelled") == []
    assert brokers.condition("Ready") == "True"
