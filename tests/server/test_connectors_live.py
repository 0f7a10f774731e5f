"""Network connectors that come, change and go while the broker runs, with their passwords."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from secured import Login, Secured, eventually

from lockkeeper.client import connect

ANNA: Login = {"user": "anna", "password": "tea"}
USERS = "  access: {users: [{name: anna, secretName: anna}, {name: net, secretName: net}]}\n"
PASSWORDS = {"anna": "tea", "net": "water"}
QUICK = "initialReconnectDelay=100&maxReconnectDelay=100&minConnectTime=100"


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    running = Secured(tmp_path_factory.mktemp("near") / "broker", USERS, PASSWORDS)
    yield running
    running.running.stop()


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    running = Secured(tmp_path_factory.mktemp("far") / "broker", USERS, PASSWORDS)
    yield running
    running.running.stop()


def connector(near: Secured, far: Secured, **more: Any) -> str:
    uri = f"static:(tcp://127.0.0.1:{far.port})?{QUICK}"
    said = {"name": "to-far", "uri": uri, "userName": "net", **more}
    return f"{USERS}  networkConnectors: [{ {**said, 'passwordFile': str(password(near))} }]\n"


def password(near: Secured) -> Path:
    return near.directory / "network-password"


def bridge(broker: Secured) -> Any:
    bridges = broker.status()["bridges"]
    return bridges[0] if bridges else {"state": "none", "failure": None, "destinations": []}


def test_connectors_come_and_go_without_a_restart(near: Secured, far: Secured) -> None:
    pid = near.status()["pid"]
    assert near.push(connector(near, far))[0] == 200
    # A Secret of a pod may come after the configuration.
    eventually(lambda: "passwordFile: " in (bridge(near)["failure"] or ""))
    password(near).write_text("water\n")
    eventually(lambda: bridge(near)["state"] == "connected")

    with connect(near.url, **ANNA) as here, connect(far.url, **ANNA) as there:
        consumer = there.session().consumer("LIVE")
        producer = here.session().producer("LIVE")
        producer.send("over the bridge")
        message = consumer.receive(10)
        assert message is not None and message.body == "over the bridge"

        assert near.push(USERS)[0] == 200
        eventually(lambda: bridge(near)["state"] == "none")
        eventually(lambda: far.status()["bridges"] == [])
        producer.send("stays here")
        assert consumer.receive(0.3) is None
        taken = here.session().consumer("LIVE").receive(10)
        assert taken is not None and taken.body == "stays here"
    assert near.status()["pid"] == pid


def test_an_address_that_cannot_be_dialled_is_told_and_the_others_are_tried(
    near: Secured, far: Secured
) -> None:
    password(near).write_text("water\n")
    never = f"tcp://127.0.0.1:1?connectionTimeout={'9' * 400}"
    uri = f"static:({never})?{QUICK}"
    assert near.push(connector(near, far, uri=uri))[0] == 200
    eventually(lambda: "too large" in (bridge(near)["failure"] or ""))
    uri = f"masterslave:({never},tcp://127.0.0.1:{far.port})?{QUICK}"
    assert near.push(connector(near, far, uri=uri))[0] == 200
    eventually(lambda: bridge(near)["state"] == "connected")
    uri = f"static:(tcp://far..example:{far.port})"
    status, answer = near.push(connector(near, far, uri=uri))
    assert status == 422 and "'far..example' is no host name" in str(answer)
    assert near.push(USERS)[0] == 200
    eventually(lambda: bridge(near)["state"] == "none")


def test_only_bridges_that_change_begin_anew(near: Secured, far: Secured) -> None:
    password(near).write_text("water\n")
    assert near.push(connector(near, far))[0] == 200
    eventually(lambda: bridge(near)["state"] == "connected")
    since = bridge(near)["since"]

    more = "  destinationPolicies: [{match: OTHER, recorded: true}]\n"
    assert near.push(connector(near, far) + more)[0] == 200
    assert (bridge(near)["state"], bridge(near)["since"]) == ("connected", since)

    # Of the same name: the former one's client id has to be free at the other broker.
    assert near.push(connector(near, far, prefetchSize=10))[0] == 200
    eventually(lambda: bridge(near)["since"] != since and bridge(near)["state"] == "connected")
    assert len(near.status()["bridges"]) == 1
    assert near.push(USERS)[0] == 200
    eventually(lambda: bridge(near)["state"] == "none")
