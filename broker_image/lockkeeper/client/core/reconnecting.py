"""Failover order of brokers: addresses, delays between rounds, the limit, better ones."""

import itertools
from collections.abc import Callable, Iterator

from lockkeeper.client.errors import ConnectionFailedError
from lockkeeper.client.url import UNLIMITED, Address, BrokerUrl, FailoverOptions

LEARNT_MAX = 64
"""So many addresses are known at most, those of the URL included."""
SHORT_LIFE_SECONDS = 1.0
_DOUBLINGS_MAX = 64
_ONE_TRY = FailoverOptions(
    max_reconnect_attempts=0, startup_max_reconnect_attempts=1, randomize=False
)


class Reconnector:
    """Finds a broker, as often as one is lost.

    One round tries every address, in random order unless told otherwise, those with priority
    first, the one lost last at the end. Between rounds it waits, longer each time, and also before
    the first one when the links before it ended as soon as they were made. Each wait is shortened
    by up to a half, at random: the clients of a broker that went must not come to the next one all
    at once.
    """

    def __init__(
        self,
        url: BrokerUrl,
        shuffle: Callable[[list[Address]], None],
        chance: Callable[[], float],
    ) -> None:
        """*chance* gives numbers from 0 up to 1."""
        self._addresses = url.addresses
        self._priority = url.priority
        self._options = url.failover or _ONE_TRY
        self._shuffle = shuffle
        self._chance = chance
        self._lost: Address | None = None
        self._reason: Exception | None = None
        self._unreached: dict[Address, Exception] = {}
        self._short_lives = 0

    def lose(self, address: Address, lived: float, reason: Exception) -> None:
        """Note which broker was lost, after how many seconds and why: it is tried last."""
        self._lost = address
        self._reason = reason
        self._unreached.clear()
        self._short_lives = self._short_lives + 1 if lived < SHORT_LIFE_SECONDS else 0

    def learn(self, addresses: tuple[Address, ...]) -> None:
        """Take up what a broker says of others; they are tried like those of the URL."""
        known = {(each.host, each.port) for each in self._addresses}
        new = [each for each in addresses if (each.host, each.port) not in known]
        self._addresses += tuple(new[: LEARNT_MAX - len(self._addresses)])

    def miss(self, address: Address, reason: Exception) -> None:
        """Note why a broker could not be reached."""
        self._unreached.pop(address, None)
        self._unreached[address] = reason

    def failure(self, is_first: bool) -> ConnectionFailedError:
        """Return the error for when no broker is there, with the reason for each address."""
        verb = "reached" if is_first else "reached again"
        told = "; ".join(f"at {address}{self._told(address)}" for address in self._addresses)
        error = ConnectionFailedError(f"no broker could be {verb} {told}")
        error.__cause__ = next(reversed(self._unreached.values()), self._reason)
        return error

    def _told(self, address: Address) -> str:
        reason = self._unreached.get(address)
        if reason is None and address == self._lost:
            reason = self._reason
        text = reason.strerror if isinstance(reason, OSError) and reason.strerror else reason
        return f": {text}" if text else ""

    def warns(self, rounds: int) -> bool:
        """Tell whether so many rounds without a broker are worth a warning."""
        after = self._options.warn_after_reconnect_attempts
        return after > 0 and rounds % after == 0

    def better_than(self, address: Address) -> tuple[Address, ...]:
        """Return the addresses to move to from *address*, as soon as one can be reached."""
        return () if address in self._priority else self._priority

    def order(self) -> list[Address]:
        """Return the addresses in the order in which this round tries them."""
        addresses = list(self._addresses)
        if self._options.randomize:
            self._shuffle(addresses)
        addresses.sort(key=lambda address: address not in self._priority)
        if self._lost in addresses:
            addresses.remove(self._lost)
            addresses.append(self._lost)
        return addresses

    def delays(self, is_first: bool) -> Iterator[float]:
        """Yield the delay before each round, in ms, for as many rounds as are allowed."""
        options = self._options
        limit = options.max_reconnect_attempts
        if is_first and options.startup_max_reconnect_attempts != UNLIMITED:
            limit = options.startup_max_reconnect_attempts
        if is_first and limit != UNLIMITED:
            limit = max(1, limit)
        rounds = 0
        while limit == UNLIMITED or rounds < limit:
            yield self._delay(self._short_lives + rounds)
            rounds += 1

    def pauses(self) -> Iterator[float]:
        """Yield the delay before each look for a better broker, in ms, without end."""
        return (self._delay(1 + looks) for looks in itertools.count())

    def _delay(self, failures: int) -> float:
        options = self._options
        if not failures:
            return 0
        exponent = options.reconnect_delay_exponent if options.use_exponential_back_off else 1.0
        delay = options.initial_reconnect_delay * exponent ** min(failures - 1, _DOUBLINGS_MAX)
        return min(delay, options.max_reconnect_delay) * (1 - self._chance() / 2)
