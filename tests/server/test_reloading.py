"""What is taken over without a restart: policies, permissions, users; and what is refused."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from secured import HEADER, Login, Secured, eventually, replace

from lockkeeper.client import Connection, connect
from lockkeeper.client.errors import IllegalStateError, MessagingError, SecurityError
from lockkeeper_api.hashes import hash_of_text

ANNA: Login = {"user": "anna", "password": "tea"}
EVERYTHING = "read: [anna], write: [anna], admin: [anna]"
PASSWORDS = {"anna": "tea", "bob": "coffee"}


def spec(permission: str = EVERYTHING, policy: str = "", more: str = "", users: str = "") -> str:
    users = users or "[{name: anna, secretName: anna}, {name: bob, secretName: bob}]"
    return f"""\
  access:
    users: {users}
    permissions: [{{match: ">", {permission}}}]
  destinationPolicies: [{policy}]
{more}"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Secured]:
    running = Secured(tmp_path, spec(), PASSWORDS)
    yield running
    running.running.stop()


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker that takes nothing over, since all it is told is wrong."""
    running = Secured(tmp_path_factory.mktemp("steady") / "broker", spec(), PASSWORDS)
    yield running
    running.running.stop()


@pytest.fixture
def anna(broker: Secured) -> Iterator[Connection]:
    with connect(broker.url, **ANNA) as connection:
        yield connection


def test_it_tells_the_hash_of_the_file_that_it_runs_with(steady: Secured) -> None:
    status = steady.status()
    assert status["configuration"] == hash_of_text(HEADER + spec())
    assert (status["refused"], status["refusal"]) == (None, None)


def test_a_pushed_policy_holds_for_a_queue_that_is_there(broker: Secured, anna: Connection) -> None:
    session = anna.session()
    producer = session.producer("ORDERS")
    producer.send("one", time_to_live=0.05)
    dead = session.consumer("EXPIRED.ORDERS")
    changed = spec(
        policy='{match: "ORDERS", expiry: {expireMessagesPeriod: 100ms}, deadLetters: {'
        "strategy: Individual, queuePrefix: EXPIRED., useQueueForQueueMessages: true, "
        "processExpired: true}}"
    )
    assert broker.push(changed) == (200, {"configuration": hash_of_text(HEADER + changed)})
    assert broker.status()["configuration"] == hash_of_text(HEADER + changed)
    producer.send("two", time_to_live=0.05)
    found = {message.body for message in (dead.receive(10), dead.receive(10)) if message}
    assert found == {"one", "two"}


def test_the_mounted_file_is_read_again_when_it_changes(broker: Secured) -> None:
    hash = broker.write_spec(spec(permission="read: [bob], write: [bob], admin: [bob]"))
    eventually(lambda: broker.status()["configuration"] == hash)
    with (
        connect(broker.url, **ANNA) as connection,
        pytest.raises(SecurityError, match="anna is not authorized to write to"),
    ):
        connection.session().producer("ORDERS")


def test_a_consumer_that_loses_its_right_is_closed_with_an_error(
    broker: Secured, anna: Connection
) -> None:
    errors: list[MessagingError] = []
    anna.on_error = errors.append
    session = anna.session()
    consumer, producer = session.consumer("ORDERS"), session.producer("ORDERS")
    assert broker.push(spec(permission="write: [anna]"))[0] == 200
    with pytest.raises(IllegalStateError, match="closed the consumer of queue://ORDERS"):
        consumer.receive(10)
    assert "User anna is not authorized to read from: queue://ORDERS" in str(errors[0])
    producer.send("still possible")
    assert broker.push(spec(permission="read: [anna]"))[0] == 200
    with pytest.raises(SecurityError, match="anna is not authorized to write to: queue://ORDERS"):
        producer.send("no more")


def test_users_come_and_go_with_their_file(broker: Secured, anna: Connection) -> None:
    with pytest.raises(SecurityError):
        connect(broker.url, user="anna", password="a new one")
    broker.write_users({"anna": "a new one"})
    eventually(lambda: "took over" in broker.running.log.read_text())
    connect(broker.url, user="anna", password="a new one").close()
    # Who is in stays in, with the old password; who is no user any more does not come in.
    anna.session().producer("ORDERS").send("still here")
    for old in (ANNA, {"user": "bob", "password": "coffee"}):
        with pytest.raises(SecurityError):
            connect(broker.url, **old)


def test_a_user_who_is_removed_is_disconnected(broker: Secured, anna: Connection) -> None:
    consumer = anna.session().consumer("ORDERS")
    assert broker.push(spec(users="[{name: bob, secretName: bob}]"))[0] == 200
    with pytest.raises(MessagingError):
        consumer.receive(10)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (spec(more="  journal: {fileBytes: 1Mi}"), "needs a restart: spec.journal"),
        (
            spec(more="  advisorySupport: false\n  scheduler: {enabled: true}"),
            "needs a restart: spec.scheduler, spec.advisorySupport",
        ),
        (spec(permission="rede: [anna]"), "rede"),
        (spec() + "\nkind: Queue", "kind"),
        ("  listeners: [", "YAML"),
        (spec(more="  replicas: 0"), "replicas"),
    ],
)
def test_what_is_refused_changes_nothing(changed: str, reason: str, steady: Secured) -> None:
    code, answer = steady.push(changed)
    refused = hash_of_text(HEADER + changed)
    assert (code, answer["refused"]) == (422, refused)
    assert reason in answer["error"]
    status = steady.status()
    assert (status["refused"], status["refusal"]) == (refused, answer["error"])
    assert status["configuration"] == hash_of_text(HEADER + spec())
    with connect(steady.url, **ANNA) as connection:
        connection.session().producer("ORDERS").send("as before")


def test_what_no_process_looks_at_needs_no_restart(broker: Secured) -> None:
    changed = spec(more="  replicas: 3\n  paused: true\n  resources: {limits: {memory: 1Gi}}")
    assert broker.push(changed)[0] == 200


def test_a_bad_file_is_told_and_forgotten_when_it_is_good_again(broker: Secured) -> None:
    good = broker.status()["configuration"]
    bad = broker.write_spec(spec(more="  replicas: 0"))
    refusal = eventually(lambda: broker.status()["refusal"])
    assert "replicas" in refusal
    assert (broker.status()["refused"], broker.status()["configuration"]) == (bad, good)
    broker.write_spec(spec())
    eventually(lambda: broker.status()["refused"] is None)


def test_a_bad_file_of_users_leaves_those_of_before(broker: Secured) -> None:
    replace(broker.secrets / "users", "anna:no hash at all\n")
    (refused,) = eventually(lambda: broker.status()["secretsRefused"])
    assert "users, line 1: the hash of 'anna'" in refused
    assert "no hash at all" not in refused
    connect(broker.url, **ANNA).close()
    broker.write_users(PASSWORDS)
    eventually(lambda: not broker.status()["secretsRefused"])


@pytest.mark.parametrize(
    "order",
    [{}, [], {"text": 1, "hash": "x"}, {"text": "a"}, {"text": "a", "hash": "0123456789abcdef"}],
)
def test_an_order_that_is_none_is_refused(order: object, steady: Secured) -> None:
    before = steady.status()["refused"]
    code, answer = steady.ask("configuration", order)
    assert code == 400
    assert steady.status()["refused"] == before
    assert "hash" in answer["error"]


def test_a_long_configuration_is_taken(broker: Secured) -> None:
    policies = ", ".join(f"{{match: 'ORDERS.{number:0900}'}}" for number in range(500))
    assert broker.push(spec(policy=policies))[0] == 200


def test_an_order_of_another_type_is_refused(steady: Secured) -> None:
    assert steady.ask("configuration", {"text": "a"}, kind="text/plain")[0] == 415


def test_a_standby_takes_it_over_and_serves_by_it(tmp_path: Path) -> None:
    master = Secured(tmp_path / "one", spec(), PASSWORDS)

    def shares(standby: Secured) -> None:
        (standby.directory / "data").symlink_to(tmp_path / "one" / "data")

    standby = None
    try:
        box: list[Secured] = []
        starting = threading.Thread(
            target=lambda: box.append(Secured(tmp_path / "two", spec(), PASSWORDS, shares))
        )
        starting.start()
        log = tmp_path / "two" / "broker.log"
        eventually(lambda: log.exists() and "is standby" in log.read_text())
        changed = HEADER + spec(permission="read: [anna]")
        replace(tmp_path / "two" / "broker.yaml", changed)
        eventually(lambda: "took over configuration" in log.read_text())
        master.running.stop()
        starting.join(30)
        standby = box[0]
        assert standby.status()["configuration"] == hash_of_text(changed)
        with (
            connect(standby.url, **ANNA) as connection,
            pytest.raises(SecurityError, match="anna is not authorized to write"),
        ):
            connection.session().producer("ORDERS")
    finally:
        for each in (master, standby):
            if each is not None:
                each.running.stop()
