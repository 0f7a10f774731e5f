"""Opening a connection: its URL, its ids, and the state that follows from them."""

import itertools
import random
import secrets
import socket
import time

from lockkeeper.client.core.connection import ConnectionCore
from lockkeeper.client.core.redelivery import RedeliveryPolicy, RedeliveryPolicyMap
from lockkeeper.client.tls import TlsOptions
from lockkeeper.client.url import BrokerUrl, parse_url
from lockkeeper.message.openwire import ConnectionId, ConnectionInfo

DEFAULT_URL = "failover:(tcp://127.0.0.1:61616)"
_NUMBERS = itertools.count(1)
_PROCESS = f"{secrets.randbelow(90_000) + 10_000}-{int(time.time() * 1000)}"


class Opening:
    """Everything known of a connection before it is there. Raises BrokerUrlError."""

    def __init__(
        self,
        url: str,
        client_id: str | None,
        user: str | None,
        password: str | None,
        redelivery: RedeliveryPolicy | RedeliveryPolicyMap | None,
        tls: TlsOptions | None,
    ) -> None:
        self.url: BrokerUrl = parse_url(url, tls)
        where = self.url
        self.redelivery = policies(redelivery or where.redelivery)
        chosen = client_id or where.client_id
        name = f"ID:{socket.gethostname()}-{_PROCESS}-{next(_NUMBERS)}"
        info = ConnectionInfo(
            connection_id=ConnectionId(f"{name}:1"),
            client_id=chosen or f"{name}:0",
            user_name=user if user is not None else where.user,
            password=password if password is not None else where.password,
            manageable=True,
            client_master=True,
            fault_tolerant=where.failover is not None,
        )
        self.core = ConnectionCore(info, chosen, where.options, random.random)


def policies(redelivery: RedeliveryPolicy | RedeliveryPolicyMap) -> RedeliveryPolicyMap:
    """Return a policy as the map in which it holds for everything."""
    if isinstance(redelivery, RedeliveryPolicyMap):
        return redelivery
    return RedeliveryPolicyMap(redelivery)
