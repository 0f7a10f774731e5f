"""Shares of partitions as Java computes them, and windows against a plain model."""

import random

import pytest

from lockkeeper.client.streams.core.groups import read_members, read_reset
from lockkeeper.client.streams.core.routes import Partition, Route, of_new, read_route
from lockkeeper.client.streams.core.sharing import average, by_key, java_hash
from lockkeeper.client.streams.core.window import Bounds, Holdings, Window
from lockkeeper.protocols.rocketmq.errors import ProtocolError


def as_in_java(queues: list[int], members: list[str], member: str) -> list[int]:
    """Return what AllocateMessageQueueAveragely computes, line by line."""
    index, mod = members.index(member), len(queues) % len(members)
    if len(queues) <= len(members):
        size = 1
    elif mod > 0 and index < mod:
        size = len(queues) // len(members) + 1
    else:
        size = len(queues) // len(members)
    start = index * size if mod > 0 and index < mod else index * size + mod
    count = min(size, len(queues) - start)
    return [queues[(start + each) % len(queues)] for each in range(count)]


def test_shares_are_those_of_java() -> None:
    for count in range(1, 20):
        for size in range(1, 25):
            queues, members = list(range(count)), [f"m{number:02}" for number in range(size)]
            shares = [average(queues, reversed(members), each) for each in members]
            assert shares == [as_in_java(queues, members, each) for each in members]
            assert [each for share in shares for each in share] == queues
    assert average([1, 2], ["a"], "somebody else") == []
    # In UTF-16 a surrogate comes before a private character, in Unicode behind it.
    assert average([1, 2], ["\ue000", "🙂"], "🙂") == [1]


def test_hashes_are_those_of_java() -> None:
    known = {"": 0, "a": 97, "hello": 99162322, "polygenelubricants": -(1 << 31), "🙂": 1772965}
    assert {text: java_hash(text) for text in known} == known
    assert java_hash("Aa") == java_hash("BB") == 2112
    assert by_key(range(7), "polygenelubricants") == (1 << 31) % 7


@pytest.mark.parametrize("seed", range(20))
def test_a_window_is_as_far_as_its_first_message_that_is_not_consumed(seed: int) -> None:
    chance = random.Random(seed)
    everything = Holdings()
    window = Window(100, everything)
    in_hand: dict[int, int] = {}
    next_offset = 100
    for _ in range(400):
        if chance.random() < 0.5:
            offset = next_offset + chance.choice((-2, 0, 0, 0, 3))
            size = chance.randrange(50)
            assert window.take_message(offset, size) == (offset >= next_offset)
            if offset >= next_offset:
                in_hand[offset], next_offset = size, offset + 1
        elif chance.random() < 0.1:
            next_offset = max(next_offset, next_offset + chance.randrange(-3, 5))
            window.read_to(next_offset)
        elif in_hand:
            offset = chance.choice(list(in_hand))
            del in_hand[offset]
            window.done(offset)
            window.done(offset)
        assert window.position == min(in_hand, default=next_offset)
        assert window.next_offset == next_offset
        assert (window.held.messages, window.held.bytes) == (len(in_hand), sum(in_hand.values()))
        assert window.held == everything
        bounds = Bounds(messages=20, bytes=400, span=30)
        fits = len(in_hand) < 20 and sum(in_hand.values()) < 400
        assert window.has_room(bounds) == (fits and next_offset - window.position <= 30)
    window.clear()
    assert everything == Holdings()


ROUTE = b"""{"brokerDatas": [
  {"brokerName": "b", "brokerAddrs": {"0": "10.0.0.2:10911", "1": "10.0.0.3:10911"}},
  {"brokerName": "a", "brokerAddrs": {"1": "10.0.0.1:10911"}}],
 "queueDatas": [
  {"brokerName": "b", "perm": 6, "readQueueNums": 2, "writeQueueNums": 1},
  {"brokerName": "a", "perm": 6, "readQueueNums": 1, "writeQueueNums": 1}]}"""


def test_a_route_has_what_can_be_reached() -> None:
    route = read_route("S", ROUTE)
    a, b, c = Partition("S", "a", 0), Partition("S", "b", 0), Partition("S", "b", 1)
    addresses = {"b": "10.0.0.2:10911", "a": "10.0.0.1:10911"}
    assert route == Route("S", addresses, readable=(a, b, c), writable=(b,))
    assert of_new("T", route, 4).writable == (Partition("T", "b", 0),)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"brokerDatas": 1}',
        b'{"brokerDatas": [{"brokerName": "a"}]}',
        b'{"queueDatas": [{"brokerName": "a", "perm": 6, "readQueueNums": 1000000000}]}',
        b'{"queueDatas": [{"brokerName": "a", "perm": "6"}]}',
        b'{"queueDatas": [{"perm": 6}]}',
    ],
)
def test_routes_that_are_none_are_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_route("S", body)


def test_resets_and_members_are_read() -> None:
    body = b'{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"S"}:7,{"brokerName":"b",'
    body += b'"queueId":0,"topic":"S"}:0}}'
    assert read_reset(body) == {Partition("S", "b", 1): 7, Partition("S", "b", 0): 0}
    assert read_reset(b"{}") == {}
    assert read_members(b'{"consumerIdList":["a","b"]}') == ["a", "b"]
    for wrong in (b'{"offsetTable":{{"queueId":1}:7}}', b"{{}:1}"):
        with pytest.raises(ProtocolError):
            read_reset(wrong)
    with pytest.raises(ProtocolError):
        read_members(b'{"consumerIdList":[1]}')
