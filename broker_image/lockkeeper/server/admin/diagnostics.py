"""Answers of `lockkeeper why`: queues, messages, groups, producers, journal files."""

from aiohttp import web

from lockkeeper.server.admin.answers import Serving, StatusOf, not_master, refusal
from lockkeeper.server.why import (
    UnknownSubjectError,
    files_answer,
    group_answer,
    producers_answer,
    queue_answer,
)


class Diagnostics:
    """Explains what a master does."""

    def __init__(self, status: StatusOf, serving: Serving) -> None:
        self._status = status
        self._serving = serving

    def routes(self) -> list[web.RouteDef]:
        """Return what is answered here."""
        return [web.get("/api/v1/why/{kind}", self._tell_why)]

    async def _tell_why(self, request: web.Request) -> web.Response:
        """Explain a queue, one of its messages, a group, waiting producers, or journal files."""
        engine, name = self._serving(), request.query.get("name", "")
        if engine is None:
            return not_master(self._status()["role"])
        engine.stamp()
        try:
            match request.match_info["kind"]:
                case "queue":
                    message_id = request.query.get("message", "")
                    answer = queue_answer(engine.broker, name, message_id)
                case "group":
                    stream = request.query.get("stream", "")
                    answer = await group_answer(engine.broker, name, stream)
                case "file":
                    answer = await files_answer(engine.broker, name)
                case "producer":
                    answer = producers_answer(engine.broker, name)
                case kind:
                    known = "queue, group, producer and file can be explained"
                    return refusal(404, f"why {kind}: {known}")
        except (UnknownSubjectError, ValueError) as error:
            return refusal(404, str(error))
        return web.json_response(answer)
