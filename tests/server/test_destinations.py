"""Destinations through the admin endpoint: declared, changed, told of, emptied, removed."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
import wire
from pods import Pod, wait_until
from ports import free_port

from lockkeeper.message.destination import Destination, queue, topic
from lockkeeper.message.ids import LocalTransactionId, ProducerId
from lockkeeper.message.openwire import ProducerInfo, TransactionOperation
from lockkeeper.server.admin.destinations import OF_BROKER

StartPod = Callable[..., Pod]
SPEC = """\
  access: {anonymous: true}
  locker: {acquireInterval: 100ms}
  schedulePeriodForDestinationPurge: 100ms
  destinationPolicies:
    - {match: '>', inactivity: {gcInactiveDestinations: true, inactiveTimeoutBeforeGc: 1ms}}
    - {match: 'ORDERS.>', memoryLimit: 2Mi}
"""


class Desk:
    """Asks one broker's admin endpoint; answers are a code and the JSON."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod

    def __call__(
        self, verb: str, path: str, value: Any = None, kind: str = "application/json"
    ) -> tuple[int, Any]:
        body = None if value is None else json.dumps(value).encode()
        url = f"{self.pod.admin}/api/v1/destinations{path}"
        request = urllib.request.Request(url, body, {"Content-Type": kind}, method=verb)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def declare(self, path: str, policy: Any = None, owner: str = "shop/orders") -> Any:
        code, said = self("PUT", path, {"policy": policy, "owner": owner})
        assert code == 200, said
        return said


@pytest.fixture(scope="module")
def pod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pod]:
    home = tmp_path_factory.mktemp("pod")
    pod = Pod("orders-0", home, home / "data", spec=SPEC)
    pod.wait_for("master")
    yield pod
    pod.kill()


@pytest.fixture
def desk(pod: Pod) -> Desk:
    return Desk(pod)


@pytest.fixture
def connection(pod: Pod) -> Iterator[wire.Wire]:
    with wire.Wire(pod.port) as connection:
        yield connection


def send(
    connection: wire.Wire, name: str, count: int = 1, size: int = 10, persistent: bool = True
) -> None:
    producer = connection.producer()
    for number in range(1, count + 1):
        message = wire.bytes_message(producer, number, queue(name), bytes(size))
        message.persistent = persistent
        connection.request(message)


def test_a_declared_destination_is_there_and_stays(desk: Desk) -> None:
    assert desk("GET", "/queues/NEW") == (404, {"error": "there is no queue://NEW"})
    said = desk.declare("/queues/NEW", {"memoryLimit": "1Mi"})
    assert (said["name"], said["kind"], said["depth"]) == ("NEW", "Queue", 0)
    assert (said["owner"], said["policy"]) == ("shop/orders", {"memoryLimit": "1Mi"})
    assert said["oldestMessageAge"] is None and said["producers"] == said["consumers"] == 0
    code, listed = desk("GET", "?owned=true")
    assert code == 200 and said in listed["destinations"]
    status = desk.pod.status()
    assert listed["broker"] == {key: status[key] for key in OF_BROKER}
    with wire.Wire(desk.pod.port) as connection:
        connection.consumer(queue("UNDECLARED"))
    wait_until(lambda: desk("GET", "/queues/UNDECLARED")[0] == 404)
    assert desk("GET", "/queues/NEW")[0] == 200


@pytest.mark.parametrize(
    ("destination", "subscription"), [(queue("WATCHED"), None), (topic("WATCHED"), "auditor")]
)
def test_the_oldest_message_may_be_with_a_consumer(
    desk: Desk, connection: wire.Wire, destination: Destination, subscription: str | None
) -> None:
    connection.consumer(destination, prefetch=1, subscription_name=subscription)
    producer = connection.producer()
    for number in (1, 2):
        connection.request(wire.bytes_message(producer, number, destination, b""))
        time.sleep(0.3)
    assert connection.next_dispatch() is not None
    path = "/queues/WATCHED" if destination.is_queue else "/topics/WATCHED"
    assert desk("GET", path)[1]["oldestMessageAge"] >= 600


def test_a_topic(desk: Desk) -> None:
    assert desk.declare("/topics/PRICES")["kind"] == "Topic"
    assert desk("GET", "/queues/PRICES")[0] == 404
    assert desk("GET", "/topics/PRICES")[1]["owner"] == "shop/orders"


@pytest.mark.parametrize("name", ["A/B C%2F", "Ä.ö", "#x&y", "x y"])
def test_names_are_quoted(desk: Desk, name: str) -> None:
    assert desk.declare(f"/queues/{quote(name, safe='')}")["name"] == name
    assert desk("DELETE", f"/queues/{quote(name, safe='')}")[0] == 200


def test_another_policy_takes_effect_on_what_is_there(desk: Desk, connection: wire.Wire) -> None:
    desk.declare("/queues/CHANGING")
    send(connection, "CHANGING", 5, size=30_000)
    small = {"memoryLimit": "64Ki", "flow": {"sendFailIfNoSpace": True}}
    desk.declare("/queues/CHANGING", small)
    with pytest.raises(wire.RefusedError, match="CHANGING"):
        send(connection, "CHANGING", persistent=False)
    desk.declare("/queues/CHANGING", {"memoryLimit": "64Mi"})
    send(connection, "CHANGING", persistent=False)


def test_without_a_policy_of_its_own_it_goes_by_the_entries(desk: Desk) -> None:
    desk.declare("/queues/ORDERS.A", {"memoryLimit": "1Mi"})
    said = desk.declare("/queues/ORDERS.A", None, owner="shop/other")
    assert (said["policy"], said["owner"]) == (None, "shop/other")


@pytest.mark.parametrize(
    ("path", "value", "code", "says"),
    [
        ("/queues/A.%3E", {}, 422, "wildcard"),
        ("/queues/A..B", {}, 422, "empty level"),
        ("/queues/Q", {"policy": {"memoryLimits": "1Mi"}}, 422, "memoryLimit"),
        ("/queues/Q", {"policy": {"memoryLimit": "much"}}, 422, "policy.memoryLimit"),
        ("/queues/Q", {"owner": 7}, 422, "owner"),
        ("/queues/Q", [], 422, "is needed"),
        ("/tables/Q", {}, 404, "queues, topics or streams"),
    ],
)
def test_what_makes_no_sense_is_refused(
    desk: Desk, path: str, value: Any, code: int, says: str
) -> None:
    found, said = desk("PUT", path, value)
    assert found == code and says in said["error"], said
    assert desk("GET", "/queues/Q")[0] == 404


def test_a_page_of_another_site_cannot_declare(desk: Desk) -> None:
    assert desk("PUT", "/queues/Q", {}, kind="text/plain")[0] == 415
    assert desk("POST", "/queues/Q/purge", {}, kind="text/plain")[0] == 415


def test_figures_of_messages(desk: Desk, connection: wire.Wire) -> None:
    send(connection, "FIGURES", 3)
    said = desk("GET", "/queues/FIGURES")[1]
    assert (said["depth"], said["enqueued"], said["dequeued"]) == (3, 3, 0)
    assert 0 <= said["oldestMessageAge"] < 60_000
    assert said["owner"] is None
    producer = ProducerId(connection.name, 77, 1)
    connection.request(ProducerInfo(producer_id=producer, destination=queue("FIGURES")))
    assert desk("GET", "/queues/FIGURES")[1]["producers"] == 1


def test_a_purge_removes_what_waits_for_good(desk: Desk, connection: wire.Wire) -> None:
    send(connection, "FULL", 50, size=2000)
    assert desk("POST", "/queues/FULL/purge", {}) == (200, {"removed": 50})
    said = desk("GET", "/queues/FULL")[1]
    assert (said["depth"], said["dequeued"], said["memoryBytes"]) == (0, 50, 0)
    assert desk("POST", "/queues/NOTHING/purge", {})[0] == 404


def test_only_an_empty_destination_goes_unless_told_otherwise(
    desk: Desk, connection: wire.Wire
) -> None:
    desk.declare("/queues/GOING")
    send(connection, "GOING")
    for path in ("/queues/GOING", "/queues/GOING?ifEmpty=true"):
        code, said = desk("DELETE", path)
        assert code == 409 and "messages or consumers" in said["error"]
    assert desk("DELETE", "/queues/GOING?ifEmpty=perhaps")[0] == 400
    assert desk("DELETE", "/queues/GOING?ifEmpty=false")[0] == 200
    assert desk("DELETE", "/queues/GOING?ifEmpty=false")[0] == 404
    code, listed = desk("GET", "?owned=true")
    assert "GOING" not in [each["name"] for each in listed["destinations"]]


def test_a_destination_with_consumers_goes_only_by_force(desk: Desk, connection: wire.Wire) -> None:
    connection.consumer(queue("USED"))
    assert desk("DELETE", "/queues/USED")[0] == 409
    assert desk("DELETE", "/queues/USED?ifEmpty=false")[0] == 200
    assert desk("GET", "/queues/USED")[0] == 404


def test_a_destination_with_an_open_transaction_goes_only_by_force(
    desk: Desk, connection: wire.Wire
) -> None:
    desk.declare("/queues/OPEN")
    identifier, producer = LocalTransactionId(connection.name, 1), connection.producer()
    connection.tell(connection.transaction(identifier, TransactionOperation.BEGIN))
    connection.request(wire.bytes_message(producer, 1, queue("OPEN"), b"x", identifier))
    assert desk("DELETE", "/queues/OPEN")[0] == 409
    connection.request(connection.transaction(identifier, TransactionOperation.ROLLBACK))
    assert desk("DELETE", "/queues/OPEN")[0] == 200


def test_a_stream_that_an_open_transaction_sends_to_goes_only_by_force(
    desk: Desk, connection: wire.Wire
) -> None:
    desk.declare("/streams/PAID", {"partitions": 1, "fromTopics": ["PAID"]})
    identifier, producer = LocalTransactionId(connection.name, 2), connection.producer()
    connection.tell(connection.transaction(identifier, TransactionOperation.BEGIN))
    connection.request(wire.bytes_message(producer, 1, topic("PAID"), b"x", identifier))
    code, said = desk("DELETE", "/streams/PAID")
    assert code == 409 and "messages or members" in said["error"]
    connection.request(connection.transaction(identifier, TransactionOperation.ROLLBACK))
    assert desk("DELETE", "/streams/PAID")[0] == 200
    assert desk("DELETE", "/streams/PAID")[0] == 404


def test_a_topic_goes_with_its_durable_subscriptions(desk: Desk, connection: wire.Wire) -> None:
    desk.declare("/topics/NEWS")
    connection.consumer(topic("NEWS"), subscription_name="reader")
    assert desk("DELETE", "/topics/NEWS")[0] == 409
    assert desk("DELETE", "/topics/NEWS?ifEmpty=false")[0] == 200
    assert desk("GET", "/topics/NEWS")[0] == 404


def test_messages_outlive_the_broker_and_declarations_do_not(start_pod: StartPod) -> None:
    pod = start_pod(spec=SPEC).wait_for("master")
    desk = Desk(pod)
    desk.declare("/queues/KEPT")
    desk.declare("/queues/EMPTY")
    with wire.Wire(pod.port) as connection:
        send(connection, "KEPT", 2)
        send(connection, "PURGED", 100)
    assert desk("POST", "/queues/PURGED/purge", {}) == (200, {"removed": 100})
    pod.kill()
    pod.start()
    pod.wait_for("master")
    said = desk("GET", "/queues/KEPT")[1]
    assert (said["depth"], said["owner"]) == (2, None)
    for empty in ("EMPTY", "PURGED"):
        code, said = desk("GET", f"/queues/{empty}")
        assert (code, said["depth"], said["owner"]) == (200, 0, None)
    assert desk.declare("/queues/KEPT")["depth"] == 2


def test_a_standby_decides_nothing(start_pod: StartPod) -> None:
    port = free_port()
    start_pod(number=0, port=port, spec=SPEC).wait_for("master")
    desk = Desk(start_pod(number=1, port=port, spec=SPEC).wait_for("standby"))
    for verb, path in (
        ("GET", ""), ("GET", "/queues/A"), ("PUT", "/queues/A"), ("DELETE", "/queues/A"),
        ("POST", "/queues/A/purge"),
    ):  # fmt: skip
        code, said = desk(verb, path, None if verb in ("GET", "DELETE") else {})
        assert (code, said["role"]) == (409, "standby")
