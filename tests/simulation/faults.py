"""What may go wrong, drawn from the seed: when, what, and to whom."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simulation.hub import SECOND

if TYPE_CHECKING:
    from simulation.life import Life
    from simulation.pair import Replica

HOUR = 3600
NEEDS_A_LEASE = ("lose_locks", "cut_from_api_server", "lose_api_server")
"""What only a Lease guards against, or what concerns nobody else."""
ENDS = ("lose_machine", "lose_machine", "kill", "terminate")
"""How a master ends whose place is to be taken."""
OF_A_TAKE_OVER = (
    *("kill", "terminate", "freeze", "cut_power", "slow_disk", "lose_locks", "step_clock"),
    *("cut_from_api_server", "lose_api_server") * 3,
    *("lost_answers", "lose_machine"),
)
"""What goes on meanwhile: half of the time it is about the API server."""
HARMLESS = {"reload", "reset_connections", "cut_clients", "slow_disk", "step_clock"}
"""What is no reason for a master to end."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong *at* so many seconds into a round."""

    at: float
    kind: str
    who: int
    amount: float

    def __str__(self) -> str:
        return f"{self.at:.3f} s: {self.kind} ({self.who}, {self.amount:.3f})"


@dataclass
class Faults:
    """Carries faults out on one life."""

    life: "Life"
    done: list[str] = field(default_factory=list)

    def plan(self, count: int, seconds: float, only: Collection[str] = ()) -> list[Fault]:
        """Draw faults for so many *seconds*, of all kinds or *only* of some, as often as named."""
        chance = self.life.chance
        possible = self.kinds()
        kinds = [kind for kind in only or possible if kind in possible]
        return sorted(
            (
                Fault(
                    chance.uniform(0.05, seconds),
                    chance.choice(kinds),
                    chance.randrange(2),
                    chance.random(),
                )
                for _ in range(count)
            ),
            key=lambda each: each.at,
        )

    def kinds(self) -> list[str]:
        """Return the names of what may happen in this world."""
        kinds = [name.removeprefix("do_") for name in dir(self) if name.startswith("do_")]
        if not self.life.pair.has_lease:
            kinds = [kind for kind in kinds if kind not in NEEDS_A_LEASE]
        return kinds

    def carry_out(self, fault: Fault) -> None:
        """Let one happen."""
        self.done.append(str(fault))
        self.life.pair.note(f"FAULT {fault}")
        getattr(self, f"do_{fault.kind}")(fault)

    def heal(self) -> None:
        """End all that lasts."""
        life = self.life
        life.world.disk.is_slow = life.world.disk.is_full = False
        life.world.disk.fails_sync = None
        life.world.network.heal()
        life.pair.cluster.unreachable_until.clear()
        life.pair.cluster.forgets_answers = 0.0
        life.pair.cluster.refuses = False
        for process in life.pair.processes():
            process.plan = process.calls_left = None

    # Processes

    def _target(self, fault: Fault) -> "Replica":
        """Return mostly the master."""
        master = self.life.pair.master()
        if master is not None and fault.amount < 0.8:
            return master
        return self.life.pair.replicas[fault.who]

    def _at_a_call(self, fault: Fault, action: Callable[["Replica"], None]) -> None:
        """Do something in the midst of a replica's work: at one of its next system calls.

        A replica that has little to do does not come to so many; then it is after a second.
        """
        replica = self._target(fault)
        process = replica.process
        if process is None or not process.is_alive:
            return
        process.calls_left = 1 + int(fault.amount * 1000) % 60
        plan = process.plan = lambda _: action(replica)

        def at_last() -> None:
            if process.is_alive and process.plan is plan:
                process.plan = process.calls_left = None
                plan(process)

        self._later(1, at_last)

    def do_kill(self, fault: Fault) -> None:
        """SIGKILL."""
        hub = self.life.world.hub

        def kill(replica: "Replica") -> None:
            if replica.process is not None:
                hub.kill(replica.process)

        self._at_a_call(fault, kill)

    def do_lose_machine(self, fault: Fault) -> None:
        """A machine is gone without a word; its pod begins on another one, later."""
        seconds = 40 * self.life.chance.random() ** 2
        self._at_a_call(fault, lambda replica: replica.lose(seconds))

    def do_terminate(self, fault: Fault) -> None:
        """SIGTERM: a rolling change."""
        self._target(fault).terminate()

    def do_freeze(self, fault: Fault) -> None:
        """SIGSTOP for up to a minute, and on it goes."""
        hub = self.life.world.hub
        seconds = self.life.chance.choice((0.05, 1, 3, 12, 60)) * (0.2 + fault.amount)

        def stop(replica: "Replica") -> None:
            if replica.process is not None:
                hub.stop(replica.process, int(seconds * SECOND))

        self._at_a_call(fault, stop)

    def do_cut_power(self, fault: Fault) -> None:
        """Everything stops, what was not synced may be gone."""
        self.cut_power()

    def cut_power(self) -> None:
        """See `do_cut_power`."""
        for process in self.life.pair.processes():
            self.life.world.hub.kill(process)
        self.life.world.disk.cut_power()

    # The disk

    def do_slow_disk(self, fault: Fault) -> None:
        """Syncs take up to three seconds."""
        disk = self.life.world.disk
        disk.is_slow = True
        self._later(2, lambda: setattr(disk, "is_slow", False))

    def do_full_disk(self, fault: Fault) -> None:
        """No room for a while."""
        disk = self.life.world.disk
        disk.is_full = True
        self._later(3 * fault.amount, lambda: setattr(disk, "is_full", False))

    def do_failing_sync(self, fault: Fault) -> None:
        """The next fsync of a process fails, and what it was for is half lost."""
        replica = self._target(fault)
        if replica.is_alive:
            self.life.world.disk.fails_sync = replica.process

    # The network

    def do_reset_connections(self, fault: Fault) -> None:
        """Some connections break for both sides, perhaps when an answer is about to be sent."""
        network = self.life.world.network

        def reset(replica: "Replica") -> None:
            if replica.process is not None:
                network.reset_some(replica.process, fault.amount)

        self._at_a_call(fault, reset)

    def do_cut_clients(self, fault: Fault) -> None:
        """Clients and a replica do not reach each other, and nobody says so."""
        network = self.life.world.network
        replica = self._target(fault)
        if replica.process is not None:
            network.cut(self.life.clients, replica.process)
            self._later(4 * fault.amount, network.heal)

    def do_cut_from_api_server(self, fault: Fault) -> None:
        """A replica does not reach the API server."""
        cluster = self.life.pair.cluster
        cluster.refuses = self.life.chance.random() < 0.5
        cluster.cut(self._target(fault).name, 10 * fault.amount)

    def do_lose_api_server(self, fault: Fault) -> None:
        """Nobody reaches the API server."""
        cluster = self.life.pair.cluster
        cluster.refuses = self.life.chance.random() < 0.5
        for replica in self.life.pair.replicas:
            cluster.cut(replica.name, 10 * fault.amount)

    def do_lost_answers(self, fault: Fault) -> None:
        """What the API server has carried out is not told."""
        cluster = self.life.pair.cluster
        cluster.forgets_answers = fault.amount / 2
        self._later(3, lambda: setattr(cluster, "forgets_answers", 0.0))

    def do_lose_locks(self, fault: Fault) -> None:
        """The file system forgets who has locked what."""
        self.life.world.disk.lose_locks()

    # People

    def do_reload(self, fault: Fault) -> None:
        """Other policies are to be gone by."""
        self.life.pair.configure(self.life.policies())

    # Time

    def do_step_clock(self, fault: Fault) -> None:
        """The wall clock of a machine jumps by up to an hour."""
        offset = int((fault.amount - 0.5) * 2 * HOUR * SECOND)
        self.life.pair.wall_offsets[fault.who] += offset
        process = self.life.pair.replicas[fault.who].process
        if process is not None:
            process.wall_offset += offset

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        self.life.world.hub.call_later(int(seconds * SECOND), action)
