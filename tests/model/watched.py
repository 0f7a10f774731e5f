"""A queue that is watched at every step: what it does is told to the oracle, which judges it."""

import tempfile
from pathlib import Path
from typing import Any, cast

from hypothesis.stateful import RuleBasedStateMachine, invariant
from oracle import Eater, Oracle, Sent, State
from world import World, number_of

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.diagnostics.queues import why_waiting
from lockkeeper.broker.outputs import Delivery, EndOfMessages
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.message.rewrite import decoded

CONNECTIONS = 3


class WatchedQueue(RuleBasedStateMachine):
    """The broker, the oracle, and what is compared between them."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="lockkeeper-model-"))

    def begin(self, policy: DestinationPolicy) -> None:
        """Open the broker with a policy for its queue."""
        self.world = World(self.directory / "data", policy)
        self.oracle = Oracle(
            policy.prioritized_messages, policy.dispatch.all_consumers_exclusive_by_default
        )
        self.oracle.now = self.world.now
        self.connect_all()

    def connect_all(self) -> None:
        self.connections = [self.world.connect() for _ in range(CONNECTIONS)]

    def connection(self, at: int) -> Connection:
        return self.connections[at % CONNECTIONS]

    def eater(self, at: int) -> Eater:
        return self.oracle.eaters[at % len(self.oracle.eaters)]

    def turn(self, tick: bool = True, later: int = 0) -> None:
        """End a turn of the event loop: then nobody may wait for what is there."""
        if not tick:
            return
        self.oracle.now = self.world.now + later
        self.world.tick(later)
        self.listen()
        undelivered = self.oracle.undelivered()
        assert undelivered is None, undelivered
        self.what_waits_can_be_explained()

    def what_waits_can_be_explained(self) -> None:
        """Check that the broker knows, too, that nobody should have what waits now, and why."""
        region = self.world.region()
        for reference in region.waiting():
            codes = [reason.code for reason in why_waiting(region, reference)]
            assert codes and "next" not in codes, self.world.number_of(reference)

    def listen(self) -> None:
        """Hear what the broker told, and judge each delivery in an order in which it is allowed."""
        runs: dict[Any, list[tuple[Sent, int, bool]]] = {}
        ended = []
        for output in self.world.outbox:
            if type(output) is tuple:
                tag, references = cast("Delivery", output)
                for reference in references:
                    sent = self.oracle.sent[number_of(reference.loaded)]
                    first = decoded(reference.loaded).group_first_for_consumer
                    runs.setdefault(tag, []).append((sent, reference.redeliveries, first))
            elif isinstance(output, EndOfMessages):
                ended.append(output.tag)
        self.world.outbox.clear()
        eaters = {eater.consumer.tag: eater for eater in self.oracle.eaters}
        while runs:
            objections = []
            for tag in sorted(runs, key=lambda each: self.oracle.turn_of(runs[each][0][0])):
                sent, redeliveries, first = runs[tag][0]
                objection = self.oracle.objection(eaters[tag], sent)
                if objection is None:
                    self.oracle.deliver(eaters[tag], sent, redeliveries, first)
                    runs[tag].pop(0)
                    break
                objections.append(objection)
            else:
                raise AssertionError("; ".join(objections))
            runs = {tag: run for tag, run in runs.items() if run}
        for tag in ended:
            eater = eaters[tag]
            eater.pulls = 0
            missed = [each for each in self.oracle.waiting() if self.oracle.must_have(eater, each)]
            assert eater.connection.congested or not missed, f"{missed} came not to {eater}"

    @invariant()
    def the_core_holds_what_it_should(self) -> None:
        oracle, world = self.oracle, self.world
        waiting = world.waiting()
        for sent in oracle.waiting():
            if oracle.is_expired(sent) and sent.number not in waiting:
                sent.state = State.DEAD
        in_order = [oracle.sent[number] for number in waiting]
        assert {sent.number for sent in oracle.waiting()} == set(waiting)
        assert len(waiting) == world.region().depth() == len(set(waiting))
        for at, later in enumerate(in_order):
            for earlier in in_order[:at]:
                assert not oracle.precedes(later, earlier), f"{later} waits behind {earlier}"
        for eater in oracle.eaters:
            held = [number_of(each.loaded) for each in eater.consumer.dispatched.values()]
            assert held == [sent.number for sent in eater.held]
        oracle.check_dead(world.dead())
        assert world.memory_used() == world.memory_held(work.core for work in oracle.works)
