"""Report of a broker: its own words about itself."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BridgeReport:
    """A bridge that the broker dials, by the *name* of its connector.

    *waiting* messages are in queues that it forwards, *stranded* of them nobody takes; both are
    rounded down to powers of ten.
    """

    name: str
    connected: bool
    failure: str = ""
    waiting: int = 0
    stranded: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """What a broker says of itself when the operator asks its admin endpoint.

    *takes_over* says of a standby that it is proven able to: it reads the journal's directory and
    is refused the lock for the one reason that another has it. *configuration* is the hash of
    what it runs with, *refused* that of one which it could not take over, *refusal* why.
    """

    role: str
    takes_over: bool = False
    epoch: int | None = None
    configuration: str | None = None
    refused: str | None = None
    refusal: str = ""
    version: str | None = None
    bridges: tuple[BridgeReport, ...] = ()
