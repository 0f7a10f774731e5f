"""Brokers as far as the operator sees them: the admin endpoint, and what it changes.

One socket serves all pods: each has an address of 127.0.0.0/8 of its own.
"""

import asyncio
import asyncio.sslproto
import ssl
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml
from aiohttp import web

from lockkeeper_api.hashes import hash_of_text

KINDS = {"queues": "Queue", "topics": "Topic", "streams": "Stream"}


@dataclass(slots=True)
class SimulatedBroker:
    """What the pods of one Broker share: the journal, so to speak."""

    token: str = ""
    context: ssl.SSLContext | None = None
    """What is shown at the admin endpoints; None: they are of a release without TLS."""
    master: str = ""
    epoch: int = 0
    destinations: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    failure: str = ""
    """Why no bridge is connected that it dials; empty: all are."""
    waiting: int = 0
    """Messages in queues that its bridges forward."""
    calls: list[str] = field(default_factory=list)

    def send(self, kind: str, name: str, count: int = 1) -> None:
        """Let messages come, to a destination that is made when it is not there."""
        found = self.destinations.setdefault((kind, name), new_destination(kind, name))
        found["depth"] += count
        found["enqueued"] += count
        found["oldestMessageAge"] = 0


def new_destination(kind: str, name: str) -> dict[str, Any]:
    """Return the view of a destination without messages."""
    return {
        "kind": kind,
        "name": name,
        "depth": 0,
        "consumers": 0,
        "enqueued": 0,
        "dequeued": 0,
        "oldestMessageAge": None,
        "policy": None,
        "owner": None,
    }


@dataclass(slots=True)
class SimulatedPod:
    """One process; *silent* ones hang, as if their node were gone, *busy* ones change nothing."""

    name: str
    broker: SimulatedBroker
    text: str = ""
    """The configuration that it runs with."""
    refuses: bool = False
    refused: str | None = None
    silent: bool = False
    busy: bool = False
    fenced: bool = False

    @property
    def leads(self) -> bool:
        """Whether it is the master."""
        return self.broker.master == self.name

    @property
    def connectors(self) -> list[dict[str, Any]]:
        """The network connectors of its configuration."""
        if "networkConnectors" not in self.text:
            return []
        return list(yaml.safe_load(self.text)["spec"].get("networkConnectors", ()))

    def status(self) -> dict[str, Any]:
        """Return what it says of itself."""
        return {
            "role": "fenced" if self.fenced else "master" if self.leads else "standby",
            "takesOver": not (self.leads or self.fenced) and bool(self.broker.master),
            "epoch": self.broker.epoch if self.leads else None,
            "configuration": hash_of_text(self.text),
            "refused": self.refused,
            "refusal": "it is not to its taste" if self.refused else None,
            "version": "1.0",
            "bridges": self.bridges(),
        }

    def bridges(self) -> list[dict[str, Any]]:
        """Return what it says of the bridges that it dials."""
        failure = self.broker.failure
        return [
            {
                "name": each["name"],
                "initiator": True,
                "state": "waiting" if failure else "connected",
                "failure": failure or None,
                "waiting": self.broker.waiting,
                "stranded": 0,
            }
            for each in (self.connectors if self.leads else ())
        ]


class SimulatedBrokers:
    """All pods, by their addresses."""

    def __init__(self) -> None:
        self.pods: dict[str, SimulatedPod] = {}
        self.requests = 0
        self.ways: Counter[tuple[str, str]] = Counter()
        """How often each pod was asked in which way: http, https."""
        self.names: dict[str, SimulatedBroker] = {}
        """Brokers by the names that they are asked for over TLS."""
        self._runner: web.AppRunner | None = None
        self.port = self.tls_port = 0

    async def start(self, port: int = 0, tls_port: int = 0) -> None:
        """Listen on all addresses."""
        # As much as a record of TLS, for hundreds of connections.
        asyncio.sslproto.SSLProtocol.max_size = 16 << 10
        app = web.Application(client_max_size=1 << 24)
        app.router.add_get("/api/v1/status", self._status)
        app.router.add_post("/api/v1/configuration", self._configure)
        app.router.add_post("/api/v1/fence", self._fence)
        app.router.add_get("/api/v1/destinations", self._list)
        path = "/api/v1/destinations/{plural}/{name}"
        app.router.add_put(path, self._declare)
        app.router.add_get(path, self._show)
        app.router.add_delete(path, self._remove)
        app.router.add_post(path + "/purge", self._purge)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "0.0.0.0", port, backlog=1024).start()
        shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        shown.sni_callback = self._choose
        site = web.TCPSite(self._runner, "0.0.0.0", tls_port, backlog=1024, ssl_context=shown)
        await site.start()
        self.port, self.tls_port = (address[1] for address in self._runner.addresses)

    def _choose(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        """Show the certificate of the Broker that is asked for."""
        broker = self.names.get(name or "")
        if broker is not None and broker.context is not None:
            connection.context = broker.context

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _pod(self, request: web.Request, master: bool = True) -> SimulatedPod:
        assert request.transport is not None
        self.requests += 1
        pod = self.pods.get(request.transport.get_extra_info("sockname")[0])
        if pod is None or pod.silent:
            await asyncio.sleep(60)
            raise web.HTTPServiceUnavailable
        self.ways[pod.name, request.scheme] += 1
        if pod.broker.context is not None and request.scheme != "https":
            raise web.HTTPForbidden(text='{"error": "ask over TLS"}')
        if request.headers.get("Authorization") != f"Bearer {pod.broker.token}":
            raise web.HTTPUnauthorized(text='{"error": "no token"}')
        if master and not pod.leads:
            raise web.HTTPConflict(text='{"error": "this process is not the master"}')
        if request.method != "GET":
            pod.broker.calls.append(f"{request.method} {request.path_qs}")
            if pod.busy:
                raise web.HTTPServiceUnavailable(text='{"error": "too busy for that"}')
        return pod

    async def _status(self, request: web.Request) -> web.Response:
        pod = await self._pod(request, master=False)
        return web.json_response(pod.status())

    async def _configure(self, request: web.Request) -> web.Response:
        pod, said = await self._pod(request, master=False), await request.json()
        if pod.refuses:
            pod.refused = said["hash"]
            return web.json_response({"error": "no", "refused": said["hash"]}, status=422)
        pod.text = said["text"]
        return web.json_response({"configuration": said["hash"]})

    async def _fence(self, request: web.Request) -> web.Response:
        pod, said = await self._pod(request, master=False), await request.json()
        pod.fenced = said["fenced"]
        if pod.fenced and pod.leads:
            pod.broker.master = ""
        return web.json_response({"fenced": pod.fenced})

    async def _list(self, request: web.Request) -> web.Response:
        pod = await self._pod(request)
        found = list(pod.broker.destinations.values())
        if request.query.get("owned") == "true":
            found = [each for each in found if each["owner"]]
            return web.json_response({"broker": pod.status(), "destinations": found})
        return web.json_response({"destinations": found})

    async def _declare(self, request: web.Request) -> web.Response:
        pod, said = await self._pod(request), await request.json()
        key = _key(request)
        found = pod.broker.destinations.setdefault(key, new_destination(*key))
        found |= {"policy": said["policy"], "owner": said["owner"]}
        return web.json_response(found)

    async def _show(self, request: web.Request) -> web.Response:
        found = (await self._pod(request)).broker.destinations.get(_key(request))
        if found is None:
            return web.json_response({"error": "no such destination"}, status=404)
        return web.json_response(found)

    async def _remove(self, request: web.Request) -> web.Response:
        destinations = (await self._pod(request)).broker.destinations
        found = destinations.get(_key(request))
        if found is None:
            return web.json_response({"error": "no such destination"}, status=404)
        if request.query["ifEmpty"] == "true" and (found["depth"] or found["consumers"]):
            return web.json_response({"error": "not empty"}, status=409)
        del destinations[_key(request)]
        return web.json_response({})

    async def _purge(self, request: web.Request) -> web.Response:
        found = (await self._pod(request)).broker.destinations[_key(request)]
        removed, found["depth"], found["oldestMessageAge"] = found["depth"], 0, None
        return web.json_response({"removed": removed})


def _key(request: web.Request) -> tuple[str, str]:
    return KINDS[request.match_info["plural"]], unquote(request.match_info["name"])


def context_of(certificate: str, key: str) -> ssl.SSLContext:
    """Return what shows a certificate."""
    with tempfile.TemporaryDirectory() as directory:
        pair = Path(directory, "tls.crt"), Path(directory, "tls.key")
        for path, text in zip(pair, (certificate, key), strict=True):
            path.write_text(text, "utf-8")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pair)
    return context
