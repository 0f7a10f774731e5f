"""Producers and readers, at a real broker."""

import asyncio
import zlib
from datetime import UTC, datetime, timedelta

import pytest
from stream_client_kit import declare, run, take, until

from lockkeeper.client import IllegalStateError
from lockkeeper.client.streams import (
    FIRST,
    LAST,
    AddressError,
    InvalidFilterError,
    Message,
    NoSuchStreamError,
    Outcome,
    ReceivedMessage,
    Sql,
)
from lockkeeper.client.streams.aio import connect
from lockkeeper.client.streams.core.sharing import by_key


def test_a_message_is_read_as_it_was_sent(names: str, stream: str) -> None:
    async def main() -> None:
        async with await connect(names) as connection:
            producer = await connection.producer()
            sent = await producer.send(
                stream, "zwei Pfund Tee", tag="tea", keys=["k1", "k2"], properties={"region": "EU"}
            )
            reader = await connection.reader(stream)
            (message,) = await take(reader, 1)
        assert (message.text, message.tag, message.keys) == ("zwei Pfund Tee", "tea", ["k1", "k2"])
        assert message.properties == {"region": "EU"}
        assert (message.stream, message.partition, message.offset) == (stream, sent.partition, 0)
        assert (message.unique_id, message.message_id) == (sent.unique_id, sent.message_id)
        assert 0 <= message.stored_at - message.born_at < 60_000

    run(main())


def test_partitions_are_chosen_in_turn_by_number_and_by_key(names: str, stream: str) -> None:
    async def main() -> None:
        async with await connect(names) as connection:
            await declare(connection, stream, 3)
            producer = await connection.producer()
            turns = [(await producer.send(stream, "m")).partition.number for _ in range(6)]
            assert sorted(turns[:3]) == [0, 1, 2]
            assert turns[:3] == turns[3:]
            assert (await producer.send(stream, "m", partition=2)).partition.number == 2
            for key in ("anna", "bert", "Zoë 🙂"):
                sent = await producer.send(stream, "m", partition_key=key)
                assert sent.partition.number == by_key(range(3), key)
            with pytest.raises(ValueError, match="0 to 2"):
                await producer.send(stream, "m", partition=3)
            with pytest.raises(ValueError, match="not by both"):
                await producer.send(stream, "m", partition=1, partition_key="anna")

    run(main())


def test_a_batch_keeps_its_order_and_is_split_where_it_is_large(names: str, stream: str) -> None:
    async def main() -> None:
        async with await connect(names) as connection:
            await declare(connection, stream, 2)
            producer = await connection.producer()
            messages = [Message(f"{n}:".encode() + bytes(200_000), tag=f"t{n}") for n in range(12)]
            sent = await producer.send_batch(stream, messages, partition=1)
            assert [(each.partition.number, each.offset) for each in sent] == [
                (1, n) for n in range(12)
            ]
            reader = await connection.reader(stream, partitions=[1])
            found = await take(reader, 12)
            assert [each.body for each in found] == [each.content() for each in messages]
            assert [each.unique_id for each in found] == [each.unique_id for each in sent]
            assert await producer.send_batch(stream, []) == []
            with pytest.raises(ValueError, match="by itself"):
                await producer.send_batch(stream, [Message("m", delay_level=1)])

    run(main())


def test_a_reader_seeks_by_offset_time_first_and_last(names: str, stream: str) -> None:
    async def main() -> None:
        async with await connect(names) as connection:
            await declare(connection, stream, 1)
            producer = await connection.producer()
            for number in range(3):
                await producer.send(stream, str(number))
            await asyncio.sleep(0.05)
            between = datetime.now(UTC)
            await asyncio.sleep(0.05)
            for number in range(3, 6):
                await producer.send(stream, str(number))
            reader = await connection.reader(stream, begin=LAST)
            assert await reader.receive(0.2) is None
            await reader.seek(FIRST)
            assert [each.text for each in await take(reader, 2)] == ["0", "1"]
            (partition,) = reader.positions
            assert reader.positions == {partition: 2}
            await reader.seek(between)
            assert [each.text for each in await take(reader, 1)] == ["3"]
            await reader.seek(5, partition)
            assert [each.text for each in await take(reader, 1)] == ["5"]
            await reader.seek({partition: 4})
            assert [each.text for each in await take(reader, 2)] == ["4", "5"]
            await reader.seek(LAST)
            await producer.send(stream, "6")
            assert [each.text for each in await take(reader, 1)] == ["6"]
            assert await reader.offsets(LAST) == {partition: 7}
            with pytest.raises(ValueError, match="less than 0"):
                await reader.seek(-1)
            with pytest.raises(ValueError, match="no time zone"):
                await reader.seek(datetime.now())
            with pytest.raises(ValueError, match="no partition that is read here"):
                await reader.seek(0, partition._replace(number=7))

    run(main())


def test_tags_and_conditions_choose_messages(names: str, stream: str) -> None:
    async def main() -> None:
        async with await connect(names) as connection:
            await declare(connection, stream, 1)
            producer = await connection.producer()
            # Tags whose hashes are the same in Java.
            for tag in ("Aa", "BB", "other"):
                await producer.send(stream, tag, tag=tag, properties={"size": str(len(tag))})
            by_tag = await connection.reader(stream, "Aa || other")
            assert [each.text for each in await take(by_tag, 2)] == ["Aa", "other"]
            by_condition = await connection.reader(stream, Sql("size > 2"))
            assert [each.text for each in await take(by_condition, 1)] == ["other"]
            wrong = await connection.reader(stream, Sql("size >"))
            with pytest.raises(InvalidFilterError):
                await wrong.receive(10)
            with pytest.raises(ValueError, match="names no tag"):
                await connection.reader(stream, " || ")

    run(main())


def test_delays_hold_messages_back(names: str, stream: str) -> None:
    async def main() -> None:
        async with await connect(names) as connection:
            await declare(connection, stream, 1)
            producer = await connection.producer()
            due = datetime.now(UTC) + timedelta(seconds=1.5)
            await producer.send(stream, "at a time", deliver_at=due)
            await producer.send(stream, "by level", delay_level=1)
            await producer.send(stream, "at once")
            reader = await connection.reader(stream)
            found = await take(reader, 3)
            assert found[0].text == "at once"
            assert {each.text for each in found[1:]} == {"by level", "at a time"}
            assert datetime.now(UTC) >= due

    run(main())


def test_transactions_are_seen_once_they_are_committed(names: str, stream: str) -> None:
    async def main() -> None:
        asked: list[str] = []

        def check(message: ReceivedMessage) -> Outcome:
            asked.append(message.text)
            return Outcome.COMMIT if message.text == "forgotten" else Outcome.ROLLBACK

        async with await connect(names) as connection:
            await declare(connection, stream, 1)
            plain = await connection.producer()
            with pytest.raises(IllegalStateError, match="check callback"):
                await plain.transaction(stream, Message("m"))
            producer = await connection.producer(f"P-{stream}", check)
            async with await producer.transaction(stream, Message("committed")):
                pass
            with pytest.raises(KeyError):
                async with await producer.transaction(stream, Message("taken back")):
                    raise KeyError
            await producer.transaction(stream, Message("forgotten"))
            await producer.transaction(stream, Message("regretted"))
            reader = await connection.reader(stream)
            assert [each.text for each in await take(reader, 2)] == ["committed", "forgotten"]
            assert await reader.receive(0.5) is None
            assert set(asked) <= {"forgotten", "regretted"}

    run(main())


def test_what_is_wrong_is_said(names: str, stream: str) -> None:
    async def main() -> None:
        for wrong in ("", "localhost", "host:0", "host:99999", "http://host:80"):
            with pytest.raises(AddressError):
                await connect(wrong)
        async with await connect(names) as connection:
            with pytest.raises(NoSuchStreamError):
                await connection.reader("NEVER-MADE")
            producer = await connection.producer()
            for message, reason in (
                (Message("m", properties={"KEYS": "k"}), "RocketMQ's own"),
                (Message("m", properties={"a": "b\x01"}), "characters 1 and 2"),
                (Message("m", properties={"a": ""}), "empty"),
                (Message("m", tag="a || b"), "tag"),
                (Message("m", keys=["a b"]), "blank"),
                (Message("m", keys="ab"), "list of texts"),
                (Message("m", properties={"a": "x" * 40_000}), "bytes"),
            ):
                with pytest.raises(ValueError, match=reason):
                    await producer.send_message(stream, message)
            await producer.close()
            with pytest.raises(IllegalStateError):
                await producer.send(stream, "m")
        with pytest.raises(IllegalStateError):
            await connection.producer()

    run(main())


def test_compressed_bodies_are_read(names: str, stream: str) -> None:
    from lockkeeper.client.streams.core import commands

    async def main() -> None:
        async with await connect(names) as connection:
            await declare(connection, stream, 1)
            route = await connection.network.route(stream)
            (partition,) = route.writable
            body = zlib.compress(b"tea " * 1000)
            request = commands.send("P", partition, body, {}, 0, system_flag=1)
            await connection.network.ask(route, partition.broker, request)
            reader = await connection.reader(stream)
            (message,) = await take(reader, 1)
            assert message.body == b"tea " * 1000
            assert message.size == len(body)

    run(main())


def test_a_reader_holds_no_more_than_it_may(names: str, stream: str) -> None:
    async def main() -> None:
        async with await connect(names) as connection:
            await declare(connection, stream, 1)
            producer = await connection.producer()
            await producer.send_batch(stream, [Message(b"m")] * 3_000)
            reader = await connection.reader(stream)
            await until(lambda: reader.in_hand.messages >= 1_000)
            await asyncio.sleep(0.2)
            assert reader.in_hand.messages < 1_032
            assert len(await take(reader, 3_000)) == 3_000
            assert reader.in_hand.messages == 0

    run(main())
