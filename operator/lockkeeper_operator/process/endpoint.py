"""The operator's own HTTP endpoint: health and figures."""

import logging
from collections.abc import Callable, Sequence

from aiohttp import web

from lockkeeper_operator.process.metrics import Metrics

TEXT = "text/plain; version=0.0.4; charset=utf-8"
log = logging.getLogger(__name__)


class Endpoint:
    """Serves /healthz, /readyz and /metrics."""

    def __init__(self, metrics: Metrics, problems: Callable[[], Sequence[str]]) -> None:
        """*problems* says why it is not ready, nothing where it is."""
        self._metrics, self._problems = metrics, problems
        self._told: Sequence[str] = ()
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen on *host*:*port*; 0 takes any free port. Raises OSError."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/healthz", self._health),
                web.get("/readyz", self._ready),
                web.get("/metrics", self._figures),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _health(self, _: web.Request) -> web.Response:
        """Answer: a process whose tasks have failed has ended, and does not."""
        return web.json_response({"status": "ok"})

    async def _ready(self, _: web.Request) -> web.Response:
        problems = self._problems()
        if problems != self._told:
            self._told = problems
            log.log(*_line(problems))
        ready = not problems
        said = {"ready": ready, "problems": list(problems)}
        return web.json_response(said, status=200 if ready else 503)

    async def _figures(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics.text(), headers={"Content-Type": TEXT})


def _line(problems: Sequence[str]) -> tuple[int, str, str]:
    """Return what is logged when readiness changes."""
    if problems:
        return logging.WARNING, "not ready: %s", "; ".join(problems)
    return logging.INFO, "%s", "ready"
