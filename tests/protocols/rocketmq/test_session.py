"""What RocketMQ's clients ask for, and what they are told: sessions on a real core."""

import json
from dataclasses import replace

import pytest
from rocketmq_client import START, Client, House, messages

from lockkeeper.broker.access.authenticator import Verdict
from lockkeeper.broker.access.permissions import PermissionEntry, PermissionMap
from lockkeeper.broker.access.rights import Rights
from lockkeeper.broker.streams.settings import StreamsSettings
from lockkeeper.protocols.rocketmq.codec import BINARY, JSON, Command
from lockkeeper.protocols.rocketmq.codes import Request, Response
from lockkeeper.protocols.rocketmq.messages import InBatch, encode_batch, place_of
from lockkeeper.protocols.rocketmq.signatures import SIGNATURE, signature_of

WAITS = {"sysFlag": 6, "suspendTimeoutMillis": 15_000}


@pytest.fixture(params=[JSON, BINARY])
def client(request: pytest.FixtureRequest) -> Client:
    """Return a client whose headers are in one encoding, and in the other."""
    return House().client(request.param)


def test_a_pull_is_noted_for_whoever_asks_why_a_group_stands_still(client: Client) -> None:
    client.send("T", b"body")
    client.beat("G", "T")
    client.house.turn(1_000)
    client.pull("T")
    client.pull("T", offset=1)
    client.house.turn()
    group = client.house.broker.streams.groups.find("G")
    assert group is not None
    progress = group.progress["T", 0]
    assert (progress.reader, progress.asked_for) == (client.name, 1)
    assert progress.read_at == START + 1_000


def test_a_message_is_sent_and_pulled(client: Client) -> None:
    sent = client.send("T", b"body", properties="KEYS\x01k\x02TAGS\x01red\x02")
    assert (sent.code, sent.encoding) == (Response.SUCCESS, client.encoding)
    assert (sent.fields["queueId"], sent.fields["queueOffset"]) == ("0", "0")
    number = client.pull("T")
    client.house.turn()
    pulled = client.answer_to(number)
    assert pulled is not None
    assert pulled.fields["nextBeginOffset"] == "1"
    (message,) = messages(pulled)
    assert (message.topic, message.queue, message.offset, message.body) == ("T", 0, 0, b"body")
    assert (message.properties["KEYS"], message.properties["TAGS"]) == ("k", "red")
    assert message.born_host.port == 1
    assert message.stored_host.address == b"\x0a\x00\x00\x09"
    assert message.stored_at == START
    assert place_of(sent.fields["msgId"]) == message.place


def test_a_pull_waits_for_the_next_message(client: Client) -> None:
    client.send("T", b"first")
    number = client.pull("T", 1, **WAITS)
    client.house.turn(10_000)
    assert client.answer_to(number) is None
    client.house.client().send("T", b"second")
    pulled = client.answer_to(number)
    assert pulled is not None
    assert [each.body for each in messages(pulled)] == [b"second"]


def test_a_pull_that_waited_for_nothing_is_told_so(client: Client) -> None:
    client.send("T", b"first")
    number = client.pull("T", 1, **WAITS)
    client.house.turn(15_001)
    pulled = client.answer_to(number)
    assert pulled is not None
    assert (pulled.code, pulled.remark) == (Response.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE")


def test_a_one_way_request_gets_no_answer(client: Client) -> None:
    client.say_one_way(10, {"producerGroup": "P", "topic": "T", "queueId": 0}, b"m")
    client.say_one_way(9_999, {})
    client.say_one_way(11, {"topic": "unheard-of"})
    assert client.told == []
    assert client.ask(Request.GET_MAX_OFFSET, {"topic": "T", "queueId": 0}).fields == {
        "offset": "1"
    }


def test_a_batch_is_stored_in_order(client: Client) -> None:
    batch = encode_batch([InBatch(b"a", {"TAGS": "x"}, 7), InBatch(b"b", {})])
    fields = {"a": "P", "b": "T", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 0, "h": 0, "m": True}
    sent = client.ask(Request.SEND_BATCH_MESSAGE, fields, batch)
    assert len(sent.fields["msgId"].split(",")) == 2
    number = client.pull("T")
    client.house.turn()
    pulled = client.answer_to(number)
    assert pulled is not None
    told = [(each.body, each.flag, each.offset) for each in messages(pulled)]
    assert told == [(b"a", 7, 0), (b"b", 0, 1)]


def test_a_route_leads_to_the_listener(client: Client) -> None:
    client.send("T", b"m")
    route = json.loads(client.ask(Request.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"}).body)
    (broker,) = route["brokerDatas"]
    assert (broker["brokerName"], broker["brokerAddrs"]) == ("shop", {"0": "shop:9876"})
    assert route["queueDatas"][0]["writeQueueNums"] == 4


def test_topics_are_made_by_their_first_message_if_they_may_be() -> None:
    client = House(StreamsSettings(create_on_first_use=False)).client()
    for topic in ("T", "TBW102"):
        missing = client.ask(Request.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        assert missing.code == Response.TOPIC_NOT_EXIST
    assert client.send("T", b"m").code == Response.TOPIC_NOT_EXIST


@pytest.mark.parametrize("name", ["", " ", "a b", "a*", "x" * 128])
def test_a_topic_with_another_name_is_refused(client: Client, name: str) -> None:
    assert client.send(name, b"m").code == Response.INVALID_PARAMETER


def test_members_hear_who_else_came_and_left() -> None:
    house = House()
    one, other = house.client(), house.client()
    one.beat("G", "T")
    house.turn()
    one.asked(Request.NOTIFY_CONSUMER_IDS_CHANGED)
    other.beat("G", "T")
    (notice,) = one.asked(Request.NOTIFY_CONSUMER_IDS_CHANGED)
    assert (notice.fields, notice.is_one_way) == ({"consumerGroup": "G"}, True)
    members = one.ask(Request.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "G"})
    assert json.loads(members.body) == {"consumerIdList": ["client-1", "client-2"]}
    other.session.connection_lost()
    house.clients.remove(other)
    house.turn()
    assert len(one.asked(Request.NOTIFY_CONSUMER_IDS_CHANGED)) == 1


def test_a_member_holds_a_queue_alone() -> None:
    house = House()

    def locked(client: Client, code: Request = Request.LOCK_BATCH_MQ) -> list[int]:
        told = {
            "consumerGroup": "G",
            "clientId": client.name,
            "mqSet": [{"topic": "T", "brokerName": "shop", "queueId": each} for each in (0, 1)],
        }
        answer = client.ask(code, body=json.dumps(told).encode())
        held = json.loads(answer.body)["lockOKMQSet"] if answer.body else []
        return sorted(each["queueId"] for each in held)

    one, other = house.client(), house.client()
    one.send("T", b"m")
    assert locked(one) == [0, 1]
    assert locked(one) == [0, 1]
    assert locked(other) == []
    assert locked(one, Request.UNLOCK_BATCH_MQ) == []
    assert locked(other) == [0, 1]


def test_a_message_that_is_given_back_comes_again_later(client: Client) -> None:
    client.beat("G", "T", "%RETRY%G")
    place = place_of(client.send("T", b"m").fields["msgId"])
    back = {"group": "G", "offset": place, "delayLevel": 1, "maxReconsumeTimes": 3}
    assert client.ask(Request.CONSUMER_SEND_MSG_BACK, back).code == Response.SUCCESS
    number = client.pull("%RETRY%G", **WAITS)
    client.house.turn(1_000)
    client.house.turn()
    pulled = client.answer_to(number)
    assert pulled is not None
    (message,) = messages(pulled)
    assert (message.reconsumed, message.properties["RETRY_TOPIC"]) == (1, "T")


def test_a_transaction_is_seen_when_it_is_committed(client: Client) -> None:
    sent = client.send("T", b"m", properties="TRAN_MSG\x01true\x02PGROUP\x01P\x02")
    number = client.pull("T", **WAITS)
    client.house.turn()
    assert client.answer_to(number) is None
    ended = {
        "producerGroup": "P",
        "tranStateTableOffset": sent.fields["queueOffset"],
        "commitLogOffset": 0,
        "commitOrRollback": 8,
        "msgId": "m",
    }
    client.say_one_way(Request.END_TRANSACTION, ended)
    pulled = client.answer_to(number)
    assert pulled is not None
    (message,) = messages(pulled)
    assert (message.body, message.system_flag) == (b"m", 8)


def test_a_producer_is_asked_about_its_transaction(client: Client) -> None:
    client.beat("G", producers=("P",))
    client.send("T", b"m", properties="TRAN_MSG\x01true\x02PGROUP\x01P\x02UNIQ_KEY\x01u\x02")
    client.house.turn(1_001)
    (question,) = client.asked(Request.CHECK_TRANSACTION_STATE)
    assert (question.fields["transactionId"], question.is_one_way) == ("u", True)
    ended = {
        "producerGroup": "P",
        "tranStateTableOffset": question.fields["tranStateTableOffset"],
        "commitLogOffset": 0,
        "commitOrRollback": 12,
        "msgId": "u",
    }
    client.say_one_way(Request.END_TRANSACTION, ended)
    client.house.turn(5_000)
    assert client.asked(Request.CHECK_TRANSACTION_STATE) == []


def test_a_reply_goes_to_the_client_that_asked() -> None:
    house = House()
    asker, replier = house.client(), house.client()
    asker.beat("G", producers=("P",))
    fields = {
        "producerGroup": "R", "topic": "REPLIES", "queueId": 0,
        "properties": "REPLY_TO_CLIENT\x01client-1\x02CORRELATION_ID\x01c\x02",
    }  # fmt: skip
    number = replier.say(Request.SEND_REPLY_MESSAGE, fields, b"answer")
    house.turn()
    (pushed,) = asker.asked(Request.PUSH_REPLY_MESSAGE_TO_CLIENT)
    assert (pushed.body, pushed.is_one_way) == (b"answer", False)
    assert replier.answer_to(number) is None
    asker.answer(pushed, Command(Response.SUCCESS))
    replied = replier.answer_to(number)
    assert replied is not None
    assert replied.code == Response.SUCCESS


def test_a_reply_to_nobody_is_refused(client: Client) -> None:
    fields = {"producerGroup": "R", "topic": "T", "queueId": 0,
              "properties": "REPLY_TO_CLIENT\x01nobody\x02"}  # fmt: skip
    refused = client.ask(Request.SEND_REPLY_MESSAGE, fields, b"answer")
    assert refused.code == Response.SYSTEM_ERROR
    assert "nobody" in str(refused.remark)


def test_a_question_is_handed_to_a_member_without_the_credentials() -> None:
    house = House()
    tool, member = house.client(), house.client()
    member.beat("G", "T")
    fields = {"consumerGroup": "G", "clientId": "client-2", "SecurityToken": "secret"}
    number = tool.say(Request.GET_CONSUMER_RUNNING_INFO, fields)
    house.turn()
    (question,) = member.asked(Request.GET_CONSUMER_RUNNING_INFO)
    assert "SecurityToken" not in question.fields
    member.answer(question, Command(Response.SUCCESS, body=b"{}"))
    answer = tool.answer_to(number)
    assert answer is not None
    assert answer.body == b"{}"


def test_members_are_told_of_new_offsets(client: Client) -> None:
    client.beat("G", "T")
    client.send("T", b"m")
    fields = {"group": "G", "topic": "T", "timestamp": 0, "isForce": True}
    answer = client.ask(Request.INVOKE_BROKER_TO_RESET_OFFSET, fields)
    assert b'{"offsetTable":{{"brokerName":"shop","queueId":0,"topic":"T"}:0' in answer.body
    (told,) = client.asked(Request.RESET_CONSUMER_CLIENT_OFFSET)
    assert told.body == answer.body


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (Request.PULL_MESSAGE, {}),
        (Request.PULL_MESSAGE, {"consumerGroup": "G", "topic": "T", "queueId": "x"}),
        (Request.SEND_MESSAGE, {"topic": "T"}),
        (Request.VIEW_MESSAGE_BY_ID, {"offset": "9" * 30}),
        (Request.HEART_BEAT, {}),
        (Request.LOCK_BATCH_MQ, {}),
    ],
)
def test_a_request_that_lacks_something_is_refused(
    client: Client, code: int, fields: dict[str, str]
) -> None:
    client.send("T", b"m")
    assert client.ask(code, fields).code == Response.SYSTEM_ERROR
    assert not client.session.closing


def test_other_bytes_end_the_connection() -> None:
    client = House().client()
    client.session.receive_data(b"GET / HTTP/1.1\r\n\r\n")
    assert client.session.closing
    assert "frameBytesMax" in client.session.failure


class Users:
    """An authenticator that knows anna, and answers when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[tuple[str | None, str | None, Verdict]] = []

    def check_password(
        self, user: str | None, password: str | None, tell: Verdict, address: str = ""
    ) -> None:
        """See `Authenticator.check_password`."""
        self.waiting.append((user, password, tell))

    def answer(self) -> None:
        """Let anna in, who may send to T, and nobody else."""
        user, password, tell = self.waiting.pop()
        granted = frozenset({"staff"})
        entries = [PermissionEntry("T", write=granted, admin=granted)]
        rights = Rights("anna", granted, PermissionMap(entries))
        tell(rights if (user, password) == ("anna", "secret") else None)


def signed(code: int, fields: dict[str, str], body: bytes, secret: str) -> dict[str, str]:
    """Return the fields of a request by anna, signed with a secret."""
    fields = {**fields, "AccessKey": "anna", "SecurityToken": secret}
    return {**fields, SIGNATURE: signature_of(Command(code, fields=fields, body=body), secret)}


def test_a_user_is_checked_once_and_each_signature() -> None:
    users = Users()
    house = House(authenticator=users)
    client = house.client()
    sent = {"producerGroup": "P", "topic": "T", "queueId": "0"}
    first = client.say(10, signed(10, sent, b"m", "secret"), b"m")
    second = client.say(10, signed(10, sent, b"n", "secret"), b"other")
    house.turn()
    assert client.answer_to(first) is None
    users.answer()
    house.turn()
    done, forged = client.answer_to(first), client.answer_to(second)
    assert done is not None
    assert done.code == Response.SUCCESS
    assert forged is not None
    assert (forged.code, users.waiting) == (Response.NO_PERMISSION, [])
    elsewhere = {**sent, "topic": "U"}
    assert client.ask(10, signed(10, elsewhere, b"m", "secret"), b"m").code == 16


def test_who_gives_a_wrong_password_may_do_nothing() -> None:
    users = Users()
    house = House(authenticator=users)
    client = house.client()
    number = client.say(Request.GET_BROKER_CLUSTER_INFO, signed(106, {}, b"", "guessed"))
    users.answer()
    house.turn()
    refused = client.answer_to(number)
    assert refused is not None
    assert (refused.code, refused.remark) == (
        Response.NO_PERMISSION,
        "User name [anna] or password is invalid.",
    )
    assert not client.session.is_open


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "the request names no user"),
        ({"AccessKey": "anna"}, "anna gives no password"),
    ],
)
def test_who_gives_too_little_is_told_what_is_missing(given: dict[str, str], words: str) -> None:
    users = Users()
    house = House(authenticator=users)
    client = house.client()
    number = client.say(Request.GET_BROKER_CLUSTER_INFO, given)
    users.answer()
    house.turn()
    refused = client.answer_to(number)
    assert refused is not None
    assert words in str(refused.remark)
    assert "security token" in str(refused.remark)


def test_a_stranger_finds_the_broker_but_learns_nothing_of_topics() -> None:
    """Clients take a refused route for a missing topic, and would not say what is wrong."""
    users = Users()
    house = House(authenticator=users)
    house.broker.streams.declare("T", replace(house.broker.streams.settings.defaults, partitions=3))
    stranger = house.client()
    routes = []
    for name in ("T", "unheard-of"):
        number = stranger.say(Request.GET_ROUTEINFO_BY_TOPIC, {"topic": name})
        if users.waiting:
            users.answer()
        house.turn()
        told = stranger.answer_to(number)
        assert told is not None
        assert told.code == Response.SUCCESS
        routes.append(json.loads(told.body))
    assert routes[0] == routes[1]
    assert routes[0]["brokerDatas"][0]["brokerAddrs"] == {"0": "shop:9876"}
    assert stranger.send("T", b"m").code == Response.NO_PERMISSION
    assert not stranger.session.is_open
