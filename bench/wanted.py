"""What a broker is to have beyond its defaults, whichever broker it is."""

from dataclasses import dataclass, field
from typing import Any

import identities


@dataclass(frozen=True)
class Secure:
    """The port at which a broker listens for TLS, and what it shows there."""

    port: int
    identity: identities.Identity


@dataclass(frozen=True)
class Wanted:
    """More than a broker has by default; `listener` and `spec` are fields of our resource.

    `stomp` is a port at which ActiveMQ listens for STOMP, `streams` one at which ours has its name
    server for clients of RocketMQ.
    """

    secure: Secure | None = None
    scheduler: bool = False
    stomp: int | None = None
    streams: int | None = None
    listener: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)

    @property
    def java_options(self) -> list[str]:
        """The options of a Java broker that takes all this from the system's properties."""
        options = {"schedulerSupport": str(self.scheduler).lower()}
        if self.secure is not None:
            store = "javax.net.ssl.keyStore"
            options[store] = str(self.secure.identity.keystore)
            options[f"{store}Password"] = identities.PASSWORD
        return [f"-D{name}={value}" for name, value in options.items()]
