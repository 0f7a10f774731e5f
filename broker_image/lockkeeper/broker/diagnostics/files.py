"""Diagnostics of a journal file: the messages in it, and everything else that keeps it."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from lockkeeper.broker.diagnostics.reason import Reason, counted
from lockkeeper.broker.regions.line import Snapshot

if TYPE_CHECKING:
    from lockkeeper.broker.core import Broker
    from lockkeeper.broker.regions.backlog import Backlog
    from lockkeeper.store.base import Reference, StoreFile

# How many messages are counted before others have their turn.
STEP_MESSAGES = 10_000
FILES_NAMED_MAX = 5

Owner = tuple[str, str | None]
"""Whose messages they are: a destination, and the subscription of a topic."""


class Survey:
    """The messages of every journal file, counted by destination and subscription.

    `found` has messages and bytes by file number and owner, whole when `steps` is through.
    """

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.found: dict[int, dict[Owner, tuple[int, int]]] = {}

    def steps(self) -> Iterator[None]:
        """Count, a few thousand messages at each step; in between the broker may do its work."""
        for backlog in list(_backlogs(self._broker)):
            subscription = backlog.subscription
            owner = (str(backlog.destination), None if subscription is None else subscription.key)
            references = _references(self._broker, backlog)
            while references:
                count = min(len(references), STEP_MESSAGES)
                self._count(owner, [references.popleft() for _ in range(count)])
                yield

    def _count(self, owner: Owner, references: "Sequence[Reference]") -> None:
        file_of = self._broker.context.store.file_of
        for reference in references:
            number = file_of(reference)
            if number:
                owners = self.found.setdefault(number, {})
                count, size = owners.get(owner, (0, 0))
                owners[owner] = (count + 1, size + reference.size)


def why_file(broker: "Broker", file: "StoreFile", survey: Survey) -> list[Reason]:
    """Return why a journal file is kept; never empty."""
    reasons = [*_current(file), *_messages(survey.found.get(file.number, {}))]
    for key in file.subscriptions:
        reasons.append(
            Reason(
                "subscription",
                f"the durable subscription {key} was made in it",
                "it moves on by itself once nothing waits for it, or goes when it is deleted",
                {"subscription": key},
            )
        )
    for identifier in file.transactions:
        reasons.append(
            Reason(
                "transaction",
                f"transaction {identifier} is prepared in it",
                f"`lockkeeper transactions commit '{identifier}'`, or rollback",
                {"transaction": str(identifier)},
            )
        )
    return [*reasons, *_ended(broker, file), *_names(file)] or [_nothing()]


def _backlogs(broker: "Broker") -> "Iterator[Backlog]":
    for region in broker.registry:
        yield from region.backlogs()


def _references(broker: "Broker", backlog: "Backlog") -> Snapshot:
    """Return what waits in a backlog, is held by its consumers, or ends in a transaction."""
    everybody = broker.connections.values()
    consumers = (each for connection in everybody for each in connection.consumers.values())
    held = (
        reference
        for consumer in consumers
        if backlog in consumer.backlogs
        for reference in consumer.dispatched.values()
        if consumer.backlog_of(reference) is backlog
    )
    ending = (each.consumed for each in broker.transactions.undecided())
    ended = [deque(run.references) for run in chain.from_iterable(ending) if run.backlog is backlog]
    return Snapshot([*backlog.segments(), deque(held), *ended])


def _current(file: "StoreFile") -> list[Reason]:
    if not file.is_current:
        return []
    return [Reason("current", "it is being written", "it fills up, then another one is", {})]


def _messages(owners: dict[Owner, tuple[int, int]]) -> Iterator[Reason]:
    """Yield a reason for each owner of messages in a file, the one with most of them first."""
    for (destination, subscription), (count, size) in sorted(
        owners.items(), key=lambda entry: -entry[1][0]
    ):
        whose = destination if subscription is None else f"{subscription} ({destination})"
        yield Reason(
            "messages",
            f"it holds {counted(count, 'message')} of {whose}, {size:,} bytes",
            "consume them, or have them expire",
            {
                "destination": destination,
                "subscription": subscription,
                "messages": count,
                "bytes": size,
            },
        )


def _ended(broker: "Broker", file: "StoreFile") -> Iterator[Reason]:
    """Yield the reason when the file's records end messages of files that are still there."""
    if not file.ends_messages_of:
        return
    names = {each.number: each.name for each in broker.context.store.files()}
    needed = [names[number] for number in sorted(file.ends_messages_of) if number in names]
    shown = ", ".join(needed[:FILES_NAMED_MAX])
    more = f" and {len(needed) - FILES_NAMED_MAX:,} more" if len(needed) > FILES_NAMED_MAX else ""
    yield Reason(
        "acknowledgements",
        f"it acknowledges messages in {shown}{more}: without it they would come back",
        "it goes with those files, or once they are compacted",
        {"files": needed},
    )


def _names(file: "StoreFile") -> list[Reason]:
    if not file.tells_names or file.is_current:
        return []
    told = "it tells names of queues that no later file tells again so far"
    return [Reason("names", told, "it goes once all of them were told again", {})]


def _nothing() -> Reason:
    return Reason("nothing", "nothing needs it", "it goes at the next clean-up", {})
