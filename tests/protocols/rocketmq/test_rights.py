"""What users may do with topics and groups that are others': nothing that they were not given."""

import json
from collections.abc import Mapping

import pytest
from rocketmq_client import Client, House

from lockkeeper.broker.access.authenticator import Verdict
from lockkeeper.broker.access.permissions import PermissionEntry, PermissionMap
from lockkeeper.broker.access.rights import Rights
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Request, Response
from lockkeeper.protocols.rocketmq.messages import place_of
from lockkeeper.protocols.rocketmq.signatures import SIGNATURE, signature_of

ENTRIES = [
    PermissionEntry("T", read=frozenset({"anna", "rita"}), write=frozenset({"anna"})),
    PermissionEntry("MALLORY", read=frozenset({"mallory"}), write=frozenset({"mallory"})),
    PermissionEntry("DefaultCluster_REPLY_TOPIC", write=frozenset({"anna"})),
]
HALF = "TRAN_MSG\x01true\x02PGROUP\x01P\x02"


class Users:
    """Lets everybody in whose password is the name."""

    def check_password(
        self, user: str | None, password: str | None, tell: Verdict, address: str = ""
    ) -> None:
        """See `Authenticator.check_password`."""
        known = user is not None and user == password
        tell(Rights(str(user), frozenset({str(user)}), PermissionMap(ENTRIES)) if known else None)


class UserClient(Client):
    """A client of a user."""

    user = ""

    def say(
        self,
        code: int,
        fields: Mapping[str, object] | None = None,
        body: bytes = b"",
        flag: int = 0,
    ) -> int:
        """Send a request that is signed."""
        texts = {name: str(value) for name, value in (fields or {}).items()}
        texts |= {"AccessKey": self.user, "SecurityToken": self.user}
        signature = signature_of(Command(code, fields=texts, body=body), self.user)
        return super().say(code, {**texts, SIGNATURE: signature}, body, flag)


def client_of(house: House, user: str) -> UserClient:
    """Return a client of a user."""
    client = UserClient(house, len(house.clients) + 1, 0)
    client.user = user
    house.clients.append(client)
    return client


@pytest.fixture
def anna() -> UserClient:
    """Return anna's client, a member of the group G that consumes T; T has a message."""
    house = House(authenticator=Users())
    house.broker.streams.declare("T", house.broker.streams.settings.defaults)
    anna = client_of(house, "anna")
    anna.send("T", b"secret")
    assert anna.beat("G", "T", "%RETRY%G", producers=("P",)).code == Response.SUCCESS
    return anna


def locking(client_id: str) -> bytes:
    """Return a request for the first queue of T."""
    queues = [{"topic": "T", "brokerName": "shop", "queueId": 0}]
    told = {"consumerGroup": "G", "clientId": client_id, "mqSet": queues}
    return json.dumps(told).encode()


GROUP = {"consumerGroup": "G", "topic": "T", "queueId": 0, "queueOffset": 0, "commitOffset": 0}


@pytest.mark.parametrize(
    ("code", "fields", "body"),
    [
        (Request.PULL_MESSAGE, {**GROUP, "topic": "%RETRY%G", "sysFlag": 4}, b""),
        (Request.PULL_MESSAGE, {**GROUP, "topic": "MALLORY", "sysFlag": 4}, b""),
        (Request.SEND_MESSAGE, {"producerGroup": "P", "topic": "%RETRY%G", "queueId": 0}, b"m"),
        (Request.UPDATE_CONSUMER_OFFSET, {**GROUP, "topic": "%RETRY%G"}, b""),
        (Request.INVOKE_BROKER_TO_RESET_OFFSET,
         {"group": "G", "topic": "%RETRY%G", "timestamp": 0}, b""),
        (Request.DELETE_TOPIC_IN_BROKER, {"topic": "%RETRY%G"}, b""),
        (Request.UPDATE_AND_CREATE_TOPIC, {"topic": "%RETRY%G", "writeQueueNums": 9}, b""),
        (Request.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, b'{"groupName":"G"}'),
        (Request.DELETE_SUBSCRIPTIONGROUP, {"groupName": "G"}, b""),
        (Request.LOCK_BATCH_MQ, {}, locking("mallory")),
        (Request.UNLOCK_BATCH_MQ, {}, locking("client-1")),
        (Request.UNREGISTER_CLIENT, {"clientID": "client-1", "consumerGroup": "G"}, b""),
        (Request.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": "G", "clientId": "client-1"}, b""),
        (Request.SEND_REPLY_MESSAGE,
         {"producerGroup": "P", "topic": "MALLORY", "queueId": 0,
          "properties": "REPLY_TO_CLIENT\x01client-1\x02"}, b"forged"),
    ],
)  # fmt: skip
def test_nobody_speaks_for_a_group_whose_topics_are_not_for_him(
    anna: UserClient, code: int, fields: dict[str, object], body: bytes
) -> None:
    mallory = client_of(anna.house, "mallory")
    anna.house.broker.streams.declare("MALLORY", anna.house.broker.streams.settings.defaults)
    assert mallory.ask(code, fields, body).code == Response.NO_PERMISSION
    assert anna.asked(Request.PUSH_REPLY_MESSAGE_TO_CLIENT) == []


@pytest.mark.parametrize("topics", [[], ["MALLORY"], ["%RETRY%G"]])
def test_nobody_joins_a_group_whose_topics_are_not_for_him(
    anna: UserClient, topics: list[str]
) -> None:
    mallory = client_of(anna.house, "mallory")
    subscriptions = [{"topic": topic, "subString": "*"} for topic in topics]
    told = {
        "clientID": "mallory",
        "consumerDataSet": [{"groupName": "G", "subscriptionDataSet": subscriptions}],
    }
    refused = mallory.ask(Request.HEART_BEAT, body=json.dumps(told).encode())
    assert refused.code == Response.NO_PERMISSION
    group = anna.house.broker.streams.groups.find("G")
    assert group is not None
    assert list(group.members) == ["client-1"]


def test_nobody_takes_the_place_of_another_users_client(anna: UserClient) -> None:
    rita = client_of(anna.house, "rita")
    rita.name = anna.name
    assert rita.beat("G", "T").code == Response.NO_PERMISSION
    again = client_of(anna.house, "anna")
    again.name = anna.name
    assert again.beat("G", "T").code == Response.SUCCESS


@pytest.mark.parametrize(("user", "code"), [("mallory", 16), ("anna", 1)])
def test_a_transaction_is_ended_by_its_own_group(anna: UserClient, user: str, code: int) -> None:
    sent = anna.send("T", b"m", properties=HALF)
    fields = {
        "producerGroup": "ANOTHER",
        "tranStateTableOffset": sent.fields["queueOffset"],
        "commitLogOffset": 0,
        "commitOrRollback": 12,
    }
    other = client_of(anna.house, user)
    assert other.ask(Request.END_TRANSACTION, fields).code == code
    fields["producerGroup"] = "P"
    assert anna.ask(Request.END_TRANSACTION, fields).code == Response.SUCCESS


def test_only_who_may_send_is_asked_about_a_transaction(anna: UserClient) -> None:
    anna.send("T", b"secret", properties=HALF)
    mallory = client_of(anna.house, "mallory")
    mallory.beat("M", producers=("P",))
    for _ in range(2):
        anna.house.turn(1_001)
    assert mallory.asked(Request.CHECK_TRANSACTION_STATE) == []
    assert len(anna.asked(Request.CHECK_TRANSACTION_STATE)) == 2


def test_who_may_only_read_gives_messages_back_and_up(anna: UserClient) -> None:
    rita = client_of(anna.house, "rita")
    assert rita.beat("R", "T", "%RETRY%R").code == Response.SUCCESS
    place = place_of(anna.send("T", b"m").fields["msgId"])
    back = {"group": "R", "offset": place, "delayLevel": 1, "maxReconsumeTimes": 3}
    assert rita.ask(Request.CONSUMER_SEND_MSG_BACK, back).code == Response.SUCCESS
    up = {"producerGroup": "P", "topic": "%RETRY%R", "queueId": 0, "reconsumeTimes": 4,
          "maxReconsumeTimes": 3}  # fmt: skip
    assert rita.ask(Request.SEND_MESSAGE, up, b"m").code == Response.SUCCESS
    assert anna.house.broker.streams.queries.offsets("%DLQ%R", 0) == (0, 1)
