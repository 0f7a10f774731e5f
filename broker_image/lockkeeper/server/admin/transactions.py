"""Transactions that wait for their outcome, and what a person decides of them."""

from aiohttp import web

from lockkeeper.broker.errors import BrokerError
from lockkeeper.message.ids import parse_xid
from lockkeeper.server.admin.answers import (
    Done,
    Serving,
    StatusOf,
    not_master,
    read_json,
    refusal,
    refuse_other_types,
)
from lockkeeper.server.views import transactions_view

OUTCOMES = {"commit": True, "rollback": False}


class Transactions:
    """Lists and decides the prepared transactions of a master."""

    def __init__(self, status: StatusOf, serving: Serving) -> None:
        self._status = status
        self._serving = serving

    def routes(self) -> list[web.RouteDef]:
        """Return what is answered here."""
        return [
            web.get("/api/v1/transactions", self._list),
            web.post("/api/v1/transactions", self._decide),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        engine = self._serving()
        if engine is None:
            return not_master(self._status()["role"])
        return web.json_response({"transactions": transactions_view(engine.broker)})

    async def _decide(self, request: web.Request) -> web.Response:
        """Commit or roll back a prepared transaction; answers when that is durable."""
        engine = self._serving()
        if engine is None:
            return not_master(self._status()["role"])
        refused = refuse_other_types(request)
        if refused is not None:
            return refused
        try:
            wanted = await read_json(request)
            identifier, commit = parse_xid(wanted["transaction"]), OUTCOMES[wanted["outcome"]]
        except (ValueError, LookupError, TypeError):
            return refusal(
                400,
                '{"transaction": "XID:[…]", "outcome": "commit" or "rollback"} is needed',
            )
        done = Done()
        engine.stamp()
        try:
            engine.broker.transactions.force(identifier, commit, done)
        except BrokerError as error:
            return refusal(404, str(error))
        engine.wake()
        await done.settled.wait()
        return web.json_response(wanted)
