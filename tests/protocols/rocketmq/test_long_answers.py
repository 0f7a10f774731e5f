"""Short requests with long answers: the next one is carried out when the last was sent."""

from rocketmq_client import House

from lockkeeper.protocols.rocketmq.codec import Command, encode
from lockkeeper.protocols.rocketmq.codes import Request
from lockkeeper.transport.peer import PIECE_BYTES

PULLS, BODY_BYTES, MESSAGES = 20, 50_000, 4
PULL = {
    "consumerGroup": "G",
    "topic": "T",
    "queueId": "0",
    "queueOffset": "0",
    "sysFlag": "4",
    "subscription": "*",
    "maxMsgNums": "32",
}


def test_pulls_of_one_piece_are_answered_one_after_the_other() -> None:
    house = House()
    client = house.client()
    for _ in range(MESSAGES):
        client.send("T", bytes(BODY_BYTES))
    session = client.session
    pulls = [Command(Request.PULL_MESSAGE, 100 + number, 0, PULL, b"") for number in range(PULLS)]
    session.receive_data(b"".join(map(encode, pulls)), PIECE_BYTES)
    turns = 0
    while session.unread:
        assert len(session.connection.outbox) == 1
        house.turn()
        turns += 1
        session.read_on(PIECE_BYTES)
    house.turn()
    assert turns == PULLS - 1
    found = [(each.opaque, len(each.body) > MESSAGES * BODY_BYTES) for each in client.told]
    assert found == [(100 + number, True) for number in range(PULLS)]


def test_small_answers_share_a_piece() -> None:
    house = House()
    client = house.client()
    client.send("T", b"body")
    session = client.session
    pulls = [Command(Request.PULL_MESSAGE, 100 + number, 0, PULL, b"") for number in range(PULLS)]
    session.receive_data(b"".join(map(encode, pulls)), PIECE_BYTES)
    assert session.unread == 0
    house.turn()
    assert [each.opaque for each in client.told] == [100 + number for number in range(PULLS)]
