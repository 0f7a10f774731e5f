"""Members of groups, at a real broker."""

import asyncio
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest
from stream_client_kit import declare, fill, run, take, until

from lockkeeper.client import IllegalStateError
from lockkeeper.client.streams import (
    FIRST,
    Bounds,
    ConsumeLater,
    GroupSettings,
    InvalidFilterError,
    ReceivedMessage,
    Sql,
)
from lockkeeper.client.streams.aio import connect
from lockkeeper.client.streams.core import commands
from lockkeeper.protocols.rocketmq.codes import Request

FROM_FIRST = GroupSettings(begin=FIRST)
IN_ORDER = GroupSettings(begin=FIRST, orderly=True, suspend=0.05)


def test_a_member_consumes_in_the_event_loop_or_in_threads(names: str, stream: str) -> None:
    async def main() -> None:
        async with await connect(names) as connection:
            await declare(connection, stream, 3)
            await fill(connection, stream, 30)
            seen: list[str] = []
            elsewhere: list[str] = []

            async def consume(message: ReceivedMessage) -> None:
                seen.append(message.text)

            def consume_in_thread(message: ReceivedMessage) -> None:
                time.sleep(0.001)
                elsewhere.append(message.text)

            one = await connection.consumer(f"G-{stream}", stream, consume, FROM_FIRST)
            await connection.consumer(f"H-{stream}", stream, consume_in_thread, FROM_FIRST)
            await until(lambda: len(seen) == len(elsewhere) == 30)
            assert sorted(seen, key=int) == sorted(elsewhere, key=int) == [*map(str, range(30))]
            assert [each.number for each in one.partitions] == [0, 1, 2]
            with pytest.raises(IllegalStateError, match="has a member of"):
                await connection.consumer(f"G-{stream}", stream, consume)

    run(main())


def test_members_share_partitions_and_go_on_where_the_others_were(names: str, stream: str) -> None:
    async def main() -> None:
        seen: list[str] = []

        async def consume(message: ReceivedMessage) -> None:
            seen.append(message.text)

        async with await connect(names) as connection, await connect(names) as other:
            await declare(connection, stream, 4)
            one = await connection.consumer(f"G-{stream}", stream, consume, FROM_FIRST)
            two = await other.consumer(f"G-{stream}", stream, consume, FROM_FIRST)
            await until(lambda: len(one.partitions) == len(two.partitions) == 2)
            assert not set(one.partitions) & set(two.partitions)
            await fill(connection, stream, 40)
            await until(lambda: len(seen) == 40)
            await two.close()
            await until(lambda: len(one.partitions) == 4)
            await fill(connection, stream, 40, first=40)
            await until(lambda: len(seen) >= 80)
            await declare(connection, stream, 6)
            one.share_soon()
            await until(lambda: len(one.partitions) == 6)
        assert sorted(map(int, seen)) == [*range(80)]

    run(main())


def test_what_was_consumed_is_known_at_once_when_a_member_closes(names: str, stream: str) -> None:
    async def main() -> None:
        seen: list[str] = []

        async def consume(message: ReceivedMessage) -> None:
            seen.append(message.text)

        async with await connect(names) as connection:
            await declare(connection, stream, 2)
            for count in (10, 20, 30):
                await fill(connection, stream, 10, first=count - 10)
                async with await connection.consumer(f"G-{stream}", stream, consume, FROM_FIRST):
                    await until(lambda: len(seen) >= count)  # noqa: B023
        assert sorted(map(int, seen)) == [*range(30)]

    run(main())


def test_offsets_are_kept_now_and_then(names: str, stream: str) -> None:
    async def main() -> None:
        seen: list[str] = []

        async def consume(message: ReceivedMessage) -> None:
            seen.append(message.text)

        async with await connect(names) as connection:
            await declare(connection, stream, 1)
            settings = GroupSettings(begin=FIRST, commit_interval=0.1)
            await connection.consumer(f"G-{stream}", stream, consume, settings)
            await fill(connection, stream, 5)
            await until(lambda: len(seen) == 5)
            (partition,) = (await connection.network.route(stream)).readable
            request = commands.offset_request(
                Request.QUERY_CONSUMER_OFFSET, partition, consumerGroup=f"G-{stream}"
            )
            async with asyncio.timeout(10):
                while True:
                    answer = await connection.network.ask_about(partition, lambda: request, 5)
                    if answer.fields["offset"] == "5":
                        break
                    await asyncio.sleep(0.02)

    run(main())


def test_a_group_begins_at_the_last_offset_or_at_a_time(names: str, stream: str) -> None:
    async def main() -> None:
        async with await connect(names) as connection:
            await declare(connection, stream, 1)
            await fill(connection, stream, 2)
            await asyncio.sleep(0.05)
            between = datetime.now(UTC)
            await asyncio.sleep(0.05)
            await fill(connection, stream, 2, first=2)
            last: list[str] = []
            later: list[str] = []

            async def consume_last(message: ReceivedMessage) -> None:
                last.append(message.text)

            async def consume_later(message: ReceivedMessage) -> None:
                later.append(message.text)

            await connection.consumer(f"G-{stream}", stream, consume_last)
            at_time = GroupSettings(begin=between)
            await connection.consumer(f"H-{stream}", stream, consume_later, at_time)
            await fill(connection, stream, 1, first=4)
            await until(lambda: last and len(later) == 3)
            assert (last, sorted(later)) == (["4"], ["2", "3", "4"])

    run(main())


def test_members_choose_by_tags_and_conditions(names: str, stream: str) -> None:
    async def main() -> None:
        async with await connect(names) as connection:
            await declare(connection, stream, 1)
            producer = await connection.producer()
            for tag in ("Aa", "BB", "other"):
                await producer.send(stream, tag, tag=tag, properties={"size": str(len(tag))})
            tagged: list[str] = []
            long: list[str] = []

            async def consume_tagged(message: ReceivedMessage) -> None:
                tagged.append(message.text)

            async def consume_long(message: ReceivedMessage) -> None:
                long.append(message.text)

            await connection.consumer(
                f"G-{stream}", {stream: "BB || other"}, consume_tagged, FROM_FIRST
            )
            await connection.consumer(
                f"H-{stream}", {stream: Sql("size > 2")}, consume_long, FROM_FIRST
            )
            await until(lambda: len(tagged) == 2 and long)
            assert (sorted(tagged), long) == (["BB", "other"], ["other"])
            with pytest.raises(InvalidFilterError, match="expected a literal"):
                await connection.consumer(f"I-{stream}", {stream: Sql("size >")}, consume_long)

    run(main())


def test_what_fails_comes_again_and_is_a_dead_letter_in_the_end(names: str, stream: str) -> None:
    async def main() -> None:
        times: defaultdict[str, list[int]] = defaultdict(list)

        async def consume(message: ReceivedMessage) -> None:
            assert message.stream == stream
            times[message.text].append(message.reconsumed)
            if message.text == "bad":
                raise ConsumeLater(1)
            if message.text == "shy" and message.reconsumed == 0:
                raise ConsumeLater

        async with await connect(names) as connection:
            await declare(connection, stream, 1)
            producer = await connection.producer()
            for text in ("good", "bad", "shy"):
                await producer.send(stream, text)
            settings = GroupSettings(begin=FIRST, reconsumes_max=1)
            await connection.consumer(f"G-{stream}", stream, consume, settings)
            await until(lambda: len(times["bad"]) == len(times["shy"]) == 2)
            async with asyncio.timeout(20):
                while True:
                    try:
                        reader = await connection.reader(f"%DLQ%G-{stream}", timeout=1)
                        break
                    except Exception:
                        await asyncio.sleep(0.05)
            (dead,) = await take(reader, 1)
            assert dead.text == "bad"
        assert times == {"good": [0], "bad": [0, 1], "shy": [0, 1]}

    run(main())


def test_a_group_in_order_takes_one_after_the_other(names: str, stream: str) -> None:
    async def main() -> None:
        seen: defaultdict[int, list[int]] = defaultdict(list)
        at_work: set[int] = set()
        failed: set[int] = set()

        async def consume(message: ReceivedMessage) -> None:
            partition, number = message.partition.number, int(message.text)
            assert partition not in at_work
            at_work.add(partition)
            await asyncio.sleep(0.001)
            at_work.remove(partition)
            if number % 10 == 0 and number not in failed:
                failed.add(number)
                raise ConsumeLater
            seen[partition].append(number)

        async with await connect(names) as connection:
            await declare(connection, stream, 3)
            await fill(connection, stream, 60, partitions=3)
            await connection.consumer(f"G-{stream}", stream, consume, IN_ORDER)
            await until(lambda: sum(map(len, seen.values())) == 60)
        assert dict(seen) == {each: [*range(each, 60, 3)] for each in range(3)}

    run(main())


def test_order_is_kept_when_partitions_move(names: str, stream: str) -> None:
    async def main() -> None:
        seen: defaultdict[int, list[int]] = defaultdict(list)
        at_work: set[int] = set()

        async def consume(message: ReceivedMessage) -> None:
            partition = message.partition.number
            assert partition not in at_work
            at_work.add(partition)
            await asyncio.sleep(0.002)
            at_work.remove(partition)
            seen[partition].append(int(message.text))

        async with await connect(names) as connection, await connect(names) as other:
            await declare(connection, stream, 4)
            one = await connection.consumer(f"G-{stream}", stream, consume, IN_ORDER)
            await fill(connection, stream, 200, partitions=4)
            await until(lambda: sum(map(len, seen.values())) > 40)
            two = await other.consumer(f"G-{stream}", stream, consume, IN_ORDER)
            await until(lambda: len(one.partitions) == len(two.partitions) == 2)
            await fill(connection, stream, 200, first=200, partitions=4)
            await until(lambda: sum(map(len, seen.values())) > 200)
            await one.close()
            await until(lambda: sum(map(len, seen.values())) >= 400)
            assert len(two.partitions) == 4
        # Whoever left had kept its offsets: nothing came twice.
        assert dict(seen) == {each: [*range(each, 400, 4)] for each in range(4)}

    run(main())


def test_a_group_in_order_may_give_up(names: str, stream: str) -> None:
    async def main() -> None:
        times: defaultdict[str, int] = defaultdict(int)

        async def consume(message: ReceivedMessage) -> None:
            times[message.text] += 1
            if message.text == "0":
                raise ConsumeLater

        async with await connect(names) as connection:
            await declare(connection, stream, 1)
            await fill(connection, stream, 2, partitions=1)
            settings = GroupSettings(begin=FIRST, orderly=True, suspend=0.01, reconsumes_max=2)
            await connection.consumer(f"G-{stream}", stream, consume, settings)
            await until(lambda: times["1"])
            reader = await connection.reader(f"%DLQ%G-{stream}")
            (dead,) = await take(reader, 1)
            assert (dead.text, dead.headers["RETRY_TOPIC"]) == ("0", stream)
        assert times == {"0": 3, "1": 1}

    run(main())


def test_each_member_of_a_broadcast_gets_everything(
    names: str, stream: str, tmp_path: Path
) -> None:
    async def main() -> None:
        seen: defaultdict[int, list[int]] = defaultdict(list)

        def settings(number: int) -> GroupSettings:
            file = tmp_path / f"offsets-{number}"
            return GroupSettings(broadcasting=True, offsets_file=file, begin=FIRST, suspend=0.01)

        async def consume(number: int, message: ReceivedMessage) -> None:
            seen[number].append(int(message.text))
            if seen[number].count(7) == 1 and message.text == "7":
                raise ConsumeLater

        for first in (0, 10):
            async with await connect(names) as connection, await connect(names) as other:
                await declare(connection, stream, 2)
                await fill(connection, stream, 10, first=first)
                for number, each in enumerate((connection, other)):

                    async def listener(message: ReceivedMessage, number: int = number) -> None:
                        await consume(number, message)

                    await each.consumer(f"G-{stream}", stream, listener, settings(number))
                counts = [first + 11] * 2
                await until(lambda: [len(seen[n]) for n in (0, 1)] == counts)  # noqa: B023
        assert [sorted(seen[number]) for number in (0, 1)] == [sorted([*range(20), 7])] * 2
        (tmp_path / "offsets-0").write_text("{}")
        async with await connect(names) as connection:
            with pytest.raises(ValueError, match="holds no offsets"):
                await connection.consumer(f"G-{stream}", stream, print, settings(0))

    run(main())


def test_a_listener_that_is_cancelled_has_not_consumed(names: str, stream: str) -> None:
    async def main() -> None:
        begun: list[str] = []
        seen: list[str] = []

        async def hang(message: ReceivedMessage) -> None:
            begun.append(message.text)
            if message.text == "1":
                await asyncio.sleep(3600)

        async def consume(message: ReceivedMessage) -> None:
            seen.append(message.text)

        async with await connect(names) as connection:
            await declare(connection, stream, 1)
            await fill(connection, stream, 4, partitions=1)
            one = await connection.consumer(f"G-{stream}", stream, hang, FROM_FIRST)
            await until(lambda: len(begun) == 4)
            await one.close(0.05)
            await connection.consumer(f"G-{stream}", stream, consume, FROM_FIRST)
            await until(lambda: len(seen) == 3)
            # Offsets are told up to the first that is not consumed.
            assert sorted(seen) == ["1", "2", "3"]

    run(main())


def test_close_waits_for_listeners_in_threads(names: str, stream: str) -> None:
    async def main() -> None:
        begun, go_on = Event(), Event()
        done: list[str] = []

        def consume(message: ReceivedMessage) -> None:
            begun.set()
            go_on.wait(20)
            done.append(message.text)

        async with await connect(names) as connection:
            await declare(connection, stream, 1)
            await fill(connection, stream, 1)
            consumer = await connection.consumer(f"G-{stream}", stream, consume, FROM_FIRST)
            await until(begun.is_set)
            closing = asyncio.create_task(consumer.close())
            await asyncio.sleep(0.05)
            assert not closing.done()
            go_on.set()
            await closing
        assert done == ["0"]

    run(main())


def test_a_listener_may_close_its_consumer(names: str, stream: str) -> None:
    async def main() -> None:
        seen: list[str] = []

        async with await connect(names) as connection:
            await declare(connection, stream, 1)
            await fill(connection, stream, 5, partitions=1)

            async def consume(message: ReceivedMessage) -> None:
                seen.append(message.text)
                await consumer.close()

            settings = GroupSettings(begin=FIRST, orderly=True)
            consumer = await connection.consumer(f"G-{stream}", stream, consume, settings)
            await until(lambda: seen)
            await consumer.close()
            assert seen == ["0"]

    run(main())


def test_a_member_holds_no_more_than_it_may(names: str, stream: str) -> None:
    async def main() -> None:
        go_on = asyncio.Event()
        most = 0

        async def consume(message: ReceivedMessage) -> None:
            nonlocal most
            await go_on.wait()
            most = max(most, consumer.in_hand.messages)

        async with await connect(names) as connection:
            await declare(connection, stream, 4)
            await fill(connection, stream, 800, partitions=4)
            settings = GroupSettings(
                begin=FIRST, each=Bounds(50, 1 << 20), all=Bounds(100, 1 << 20), concurrency=4
            )
            consumer = await connection.consumer(f"G-{stream}", stream, consume, settings)
            await until(lambda: consumer.in_hand.messages >= 100)
            await asyncio.sleep(0.2)
            assert consumer.in_hand.messages < 100 + 4 * 32
            go_on.set()
            await until(lambda: consumer.in_hand.messages == 0)
            assert most < 100 + 4 * 32

    run(main())


def test_a_reset_is_followed_at_once(names: str, stream: str) -> None:
    async def main() -> None:
        seen: list[str] = []

        async def consume(message: ReceivedMessage) -> None:
            seen.append(message.text)

        async with await connect(names) as connection:
            await declare(connection, stream, 2)
            await fill(connection, stream, 10)
            await connection.consumer(f"G-{stream}", stream, consume, FROM_FIRST)
            await until(lambda: len(seen) == 10)
            route = await connection.network.route(stream)
            request = commands.request(
                Request.INVOKE_BROKER_TO_RESET_OFFSET,
                group=f"G-{stream}",
                topic=stream,
                timestamp=0,
                isForce=True,
            )
            await connection.network.ask(route, min(route.addresses), request)
            await until(lambda: len(seen) == 20)
        assert sorted(seen) == sorted([*map(str, range(10))] * 2)

    run(main())


def test_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="needs one listener"):
        GroupSettings(concurrency=0)
    with pytest.raises(ValueError, match="for broadcasting"):
        GroupSettings(offsets_file=Path("offsets"))
    with pytest.raises(ValueError, match="no time zone"):
        GroupSettings(begin=datetime(2026, 1, 1))
