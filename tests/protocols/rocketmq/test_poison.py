"""What one client sends never keeps another one from what it waits for."""

import gc
import sys

import pytest
from rocketmq_client import Client, House, messages

from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.protocols.rocketmq.codec import BINARY, Command
from lockkeeper.protocols.rocketmq.codes import Request, Response
from lockkeeper.protocols.rocketmq.talk import Asked

HALF = "TRAN_MSG\x01true\x02PGROUP\x01P\x02"


def bodies(client: Client, offset: int = 0) -> list[bytes]:
    """Return the bodies that a consumer is sent from an offset on."""
    number = client.pull("T", offset)
    client.house.turn()
    pulled = client.answer_to(number)
    assert pulled is not None
    return [each.body for each in messages(pulled)]


@pytest.mark.parametrize("field", ["flag", "sysFlag", "reconsumeTimes"])
def test_a_number_that_no_message_has_room_for_is_refused(field: str) -> None:
    client = House().client()
    fields = {"producerGroup": "P", "topic": "T", "queueId": 0, field: 1 << 40}
    refused = client.ask(Request.SEND_MESSAGE, fields, b"m")
    assert (refused.code, field in str(refused.remark)) == (Response.SYSTEM_ERROR, True)
    client.send("T", b"next")
    assert bodies(client) == [b"next"]


def test_a_property_with_the_name_of_one_of_ours_is_refused() -> None:
    client = House().client()
    refused = client.send("T", b"m", properties=f"lockkeeperFlag\x01{1 << 40}\x02")
    assert refused.code == Response.MESSAGE_ILLEGAL
    assert "the property lockkeeperFlag is the broker's own" in str(refused.remark)
    client.send("T", b"next")
    assert bodies(client) == [b"next"]


def test_a_half_message_whose_properties_would_be_too_long_is_refused() -> None:
    client = House().client()
    sent = client.send("T", b"m", properties=f"{HALF}UNIQ_KEY\x01{'€' * 8000}\x02")
    assert sent.code == Response.MESSAGE_ILLEGAL


def test_a_message_of_other_worlds_that_no_client_can_have_is_passed_over() -> None:
    client = House().client()
    client.send("T", b"first")
    core, connection = client.house.broker.streams, client.session.connection
    core.append(connection, None, "T", 0, [Draft(b"long", {"a": "€" * 20_000})])
    client.send("T", b"next")
    assert bodies(client) == [b"first", b"next"]
    number = client.pull("T", 1, maxMsgNums=1)
    client.house.turn()
    passed = client.answer_to(number)
    assert passed is not None
    assert (passed.code, passed.fields["nextBeginOffset"]) == (Response.PULL_RETRY_IMMEDIATELY, "2")
    assert client.house.broker.containment.counts["message"]


def test_a_half_message_is_asked_about_after_some_days_at_most() -> None:
    client = House().client()
    client.beat("G", producers=("P",))
    client.send("T", b"m", properties=f"{HALF}CHECK_IMMUNITY_TIME_IN_SECONDS\x011e300\x02")
    client.house.turn(3 * 86_400_000 + 1)
    assert len(client.asked(Request.CHECK_TRANSACTION_STATE)) == 1


def asked() -> tuple[House, Client, Client, int]:
    """Return a tool that has asked a member something, and the number of its question."""
    house = House()
    tool, member = house.client(BINARY), house.client()
    member.beat("G", "T")
    fields = {"consumerGroup": "G", "clientId": "client-2"}
    number = tool.say(Request.GET_CONSUMER_RUNNING_INFO, fields)
    house.turn()
    return house, tool, member, number


def test_a_question_to_a_client_that_goes_is_answered() -> None:
    house, tool, member, number = asked()
    member.session.connection_lost()
    house.clients.remove(member)
    house.turn()
    answer = tool.answer_to(number)
    assert answer is not None
    assert answer.code == Response.CONSUMER_NOT_ONLINE


def test_a_question_to_a_client_that_is_silent_is_answered() -> None:
    house, tool, member, number = asked()
    house.turn(9_999)
    assert tool.answer_to(number) is None
    house.turn(1)
    answer = tool.answer_to(number)
    assert answer is not None
    assert answer.code == Response.CONSUME_MSG_TIMEOUT
    (question,) = member.asked(Request.GET_CONSUMER_RUNNING_INFO)
    member.answer(question, Command(Response.SUCCESS))
    assert tool.answer_to(number) is None


def test_a_question_that_cannot_be_passed_on_is_refused() -> None:
    house, tool, _, _ = asked()
    fields = {"consumerGroup": "G", "clientId": "client-2", "x": "€" * 60_000}
    number = tool.say(Request.GET_CONSUMER_RUNNING_INFO, fields)
    house.turn()
    house.turn()
    refused = tool.answer_to(number)
    assert refused is not None
    assert refused.code == Response.SYSTEM_ERROR


def test_an_answer_that_cannot_be_passed_on_is_an_error_of_the_one_who_asked() -> None:
    _, tool, member, number = asked()
    (question,) = member.asked(Request.GET_CONSUMER_RUNNING_INFO)
    # The one who asked reads headers in which a code has 16 bits.
    member.answer(question, Command(70_000))
    answer = tool.answer_to(number)
    assert answer is not None
    assert answer.code == Response.SYSTEM_ERROR


def test_a_query_is_answered_with_some_megabytes_at_most() -> None:
    client = House().client()
    for each in range(6):
        client.send("T", bytes([each]) * (1 << 20), each % 4, properties="KEYS\x01k\x02")
        client.house.turn(1)
    fields = {"topic": "T", "key": "k", "maxNum": 1000, "beginTimestamp": 0,
              "endTimestamp": 9_999_999_999_999}  # fmt: skip
    found = messages(client.ask(Request.QUERY_MESSAGE, fields))
    assert [each.body[0] for each in found] == [5, 4, 3]


def test_a_request_that_waits_keeps_nothing_of_what_came_with_it() -> None:
    client = House().client()
    client.send("T", b"m")
    body = bytes(1 << 20)
    before = sys.getrefcount(body)
    fields = {"consumerGroup": "G", "topic": "T", "queueId": 0, "queueOffset": 1, "sysFlag": 6,
              "suspendTimeoutMillis": 15_000, "x": "y" * 10_000}  # fmt: skip
    client.say(Request.PULL_MESSAGE, fields, body)
    client.house.turn()
    waiting = [each for each in gc.get_objects() if isinstance(each, Asked)]
    assert [(each.request.fields, each.request.body) for each in waiting] == [({}, b"")]
    assert sys.getrefcount(body) == before


def test_more_json_than_is_read_at_once_is_refused() -> None:
    client = House().client()
    refused = client.ask(Request.HEART_BEAT, body=b'{"clientID":"%b"}' % (b"c" * (4 << 20)))
    assert (refused.code, "up to" in str(refused.remark)) == (Response.SYSTEM_ERROR, True)
