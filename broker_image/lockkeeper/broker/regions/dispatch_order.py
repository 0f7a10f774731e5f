"""DispatchOrder: which of a queue's consumers take part in its dispatch, and who is next."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockkeeper.broker.policies.dispatch import DispatchPolicy
    from lockkeeper.broker.policies.message_groups import GroupOwners
    from lockkeeper.broker.subscriptions.consumer import Consumer


class _Tier:
    """Consumers of the same rank, and where the next turn begins."""

    __slots__ = ("consumers", "turn")

    def __init__(self, consumers: "list[Consumer]") -> None:
        self.consumers = consumers
        self.turn = 0


class DispatchOrder:
    """The consumers of one queue in the order in which they are asked.

    `consumers` are all of them, `exclusive` is the one that has the queue for itself, if any,
    and `active` are those that take part.
    """

    __slots__ = ("_policy", "_served", "_tiers", "_turns", "active", "consumers", "exclusive")

    def __init__(self, policy: "DispatchPolicy") -> None:
        self._policy = policy
        self._tiers: list[_Tier] = []
        self._turns = 0
        self._served: dict[Consumer, int] = {}
        self.consumers: list[Consumer] = []
        self.active: list[Consumer] = []
        self.exclusive: Consumer | None = None

    def adopt(self, policy: "DispatchPolicy") -> None:
        """Go by another policy; who has the queue for itself keeps it."""
        self._policy = policy
        self._arrange()

    def join(self, consumer: "Consumer") -> None:
        """Let a consumer take part, or wait until it may."""
        self.consumers.append(consumer)
        if self._policy.takes_over(consumer, self.exclusive):
            self.exclusive = consumer
        self._arrange()

    def leave(self, consumer: "Consumer") -> None:
        """End a consumer's part; the next one that wants the queue for itself takes over."""
        self.consumers.remove(consumer)
        self._served.pop(consumer, None)
        if self.exclusive is consumer:
            self.exclusive = self._policy.successor(self.consumers)
        self._arrange()

    def _arrange(self) -> None:
        self.active = self.consumers if self.exclusive is None else [self.exclusive]
        # Who may come together costs each of them little: the order is made when it is asked for.
        self._tiers = []

    def _ranked(self) -> "list[_Tier]":
        """Make the order, anew after every change."""
        ranks: dict[int, list[Consumer]] = {}
        for consumer in self.active:
            ranks.setdefault(self._policy.rank(consumer), []).append(consumer)
        self._tiers = [_Tier(ranks[rank]) for rank in sorted(ranks, reverse=True)]
        return self._tiers

    def next(self) -> "Consumer | None":
        """Return the next consumer that has room, of the highest rank where one has."""
        if len(self.active) == 1:
            alone = self.active[0]
            return alone if alone.credit() > 0 else None
        for tier in self._tiers or self._ranked():
            consumers, turn = tier.consumers, tier.turn
            count = len(consumers)
            for step in range(count):
                at = (turn + step) % count
                if consumers[at].credit() > 0:
                    tier.turn = 0 if self._policy.strict_order_dispatch else at + 1
                    return consumers[at]
        return None

    def choose(
        self, willing: "Iterable[Consumer]", groups: "GroupOwners | None" = None
    ) -> "Consumer":
        """Return who of several consumers with room is next.

        The highest rank comes first; for a new group (then *groups* is given) who owns the
        fewest; then who was chosen longest ago, or came first where the order is strict.
        """
        policy, served = self._policy, self._served

        def place(consumer: "Consumer") -> tuple[int, int, int]:
            owned = 0 if groups is None else groups.groups_of(consumer)
            return (-policy.rank(consumer), owned, served.get(consumer, 0))

        chosen = min(willing, key=place)
        if not policy.strict_order_dispatch:
            self._turns += 1
            served[chosen] = self._turns
        return chosen
