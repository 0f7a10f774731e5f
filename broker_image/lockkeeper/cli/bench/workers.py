"""Workers of a bench: producers and consumers, a thread and a connection each."""

import threading
import time
from abc import ABC, abstractmethod

from lockkeeper.cli.bench.figures import Figures
from lockkeeper.cli.bench.load import Load, Stamp, read_stamp
from lockkeeper.cli.errors import misused
from lockkeeper.client import (
    Acknowledge,
    Connection,
    ReceivedMessage,
    RefusedError,
    Session,
    TlsOptions,
    TransactionInDoubtError,
    TransactionRolledBackError,
    connect,
)

RECEIVE_SECONDS = 0.1
"""How long a consumer waits before it looks whether it is to end."""


class Worker(ABC):
    """A thread that works with a session of its own, from when all are ready until it is done.

    `is_ready` is set once the broker knows of it, and when it fails before; `error` says of what
    it ended.
    """

    def __init__(self, load: Load) -> None:
        self.load = load
        self.is_ready = threading.Event()
        self.error: BaseException | None = None
        self._beginning = threading.Event()
        self._ending = threading.Event()
        self._began = 0
        self._figures = Figures()
        self._counting = threading.Lock()
        # A broker that does not answer must not keep the command from ending.
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def is_over(self) -> bool:
        """Tell whether it has ended."""
        return not self._thread.is_alive()

    def start(self) -> None:
        """Connect, and wait for what the worker needs to begin."""
        self._thread.start()

    def begin(self) -> None:
        """Let it begin with its work: all workers are ready."""
        self._began = time.time_ns()
        self._beginning.set()

    def end(self) -> None:
        """Ask it to end after what it does just now."""
        self._ending.set()
        self._beginning.set()

    def take_figures(self) -> Figures:
        """Return what was counted since the last call."""
        with self._counting:
            taken, self._figures = self._figures, Figures()
        return taken

    def _count(self, figures: Figures) -> None:
        with self._counting:
            self._figures.merge(figures)

    def _run(self) -> None:
        load = self.load
        try:
            with connect(
                load.url, None, load.user, load.password, tls=TlsOptions(load.ca_file)
            ) as connection:
                self._work(connection)
        except Exception as error:
            self.error = error
        finally:
            self.is_ready.set()

    def _wait_for_all(self) -> None:
        """Wait until all workers are ready, as this one is."""
        self.is_ready.set()
        self._beginning.wait()

    @abstractmethod
    def _work(self, connection: Connection) -> None:
        """Make what is needed, wait for all others, and work."""


class BenchProducer(Worker):
    """Sends its share of the messages, as fast as it can or at the rate of the load."""

    def __init__(self, load: Load, share: int | None) -> None:
        super().__init__(load)
        self._left = share

    def _work(self, connection: Connection) -> None:
        load = self.load
        session = connection.session(transacted=load.transaction > 0)
        producer = session.producer(load.destination, persistent=load.is_persistent)
        self._wait_for_all()
        number = 0
        while not self._ending.is_set() and self._left != 0:
            stamps = self._next_stamps(number)
            if not stamps:
                continue
            number += len(stamps)
            before = time.time_ns()
            figures = Figures(sent=len(stamps))
            try:
                for sent_at in stamps:
                    producer.send(Stamp(load.run, sent_at).body(load.size))
                if load.transaction:
                    session.commit()
            except TransactionRolledBackError as error:
                # As many others are sent in their place.
                self._count(_undone(error, len(stamps)))
                continue
            if self._left is not None:
                self._left -= len(stamps)
            figures.last_sent = time.time_ns()
            figures.send_times.add((figures.last_sent - before) // 1000)
            self._count(figures)

    def _next_stamps(self, number: int) -> list[int]:
        """Wait until the next messages are due; return when each was to be sent."""
        many = max(1, self.load.transaction)
        if self._left is not None:
            many = min(many, self._left)
        if self.load.rate is None:
            return [time.time_ns()] * many
        # By the times they were due, so that a broker that stops for a while is seen to.
        stamps = [
            self._began + int(each * 1e9 / self.load.rate) for each in range(number, number + many)
        ]
        return [] if self._ending.wait(max(0.0, (stamps[-1] - time.time_ns()) / 1e9)) else stamps


class BenchConsumer(Worker):
    """Receives messages of the bench, and acknowledges nothing else."""

    def _work(self, connection: Connection) -> None:
        load = self.load
        is_transacted = load.transaction > 0
        session = connection.session(transacted=is_transacted, acknowledge=Acknowledge.CLIENT)
        consumer = session.consumer(load.destination, prefetch=load.prefetch)
        self._wait_for_all()
        unsettled = Figures()
        while not self._ending.is_set():
            message = consumer.receive(RECEIVE_SECONDS)
            if message is not None:
                self._count_message(message, unsettled)
            came = unsettled.received + unsettled.left_behind
            if came and (message is None or came >= load.transaction):
                self._settle(session, unsettled)
                unsettled = Figures()
        self._settle(session, unsettled)

    def _count_message(self, message: ReceivedMessage, figures: Figures) -> None:
        """Count a message; raise CommandError when it is not one of a bench."""
        now = time.time_ns()
        stamp = read_stamp(message.body)
        if stamp is None:
            raise misused(
                f"{self.load.destination} has messages that are not of a bench, such as "
                f"{message.message_id}: name another destination (they were not acknowledged)"
            )
        if self.load.producers and stamp.run != self.load.run:
            figures.left_behind += 1
            return
        figures.received += 1
        figures.redelivered += message.delivery_count > 1
        figures.delivery_times.add((now - stamp.sent_at) // 1000)
        figures.last_received = now

    def _settle(self, session: Session, figures: Figures) -> None:
        """Acknowledge or commit what *figures* tell of, and count it."""
        try:
            if session.is_transacted:
                session.commit()
            else:
                session.acknowledge()
        except TransactionRolledBackError as error:
            self._count(_undone(error, figures.received))
        else:
            self._count(figures)


def _undone(error: TransactionRolledBackError, messages: int) -> Figures:
    """Return the figures of a transaction of so many *messages* that *error* ended.

    Raises *error* when the broker refused it, and would refuse the next.
    """
    if isinstance(error.__cause__, RefusedError):
        raise error
    if isinstance(error, TransactionInDoubtError):
        return Figures(in_doubt=messages)
    return Figures(rolled_back=messages)
