"""The operator as kopf knows it: what is watched, and what kopf's life is to the operator's.

A developer runs it against any cluster by `kopf run -A --standalone -m
lockkeeper_operator.handlers`; `lockkeeper-operator` embeds the same handlers (`embedded.py`).
An event is put into a store and wakes a queue, and that is all: what is done then, and again
where it fails, is the workers' (`process/`). So nothing here waits, and nothing returns anything.
"""

import signal
from typing import Any

import kopf
from kubernetes.aio.config import ConfigException

from lockkeeper_operator.kopf_settings import tune
from lockkeeper_operator.kubernetes.api.kinds import Kind
from lockkeeper_operator.kubernetes.api.server import connect
from lockkeeper_operator.kubernetes.caches.caches import WATCHED
from lockkeeper_operator.process.operator import Operator
from lockkeeper_operator.process.options import NAMESPACES, from_environment

GONE = "DELETED"


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, memo: Any, **_: Any) -> None:
    """Wait until this replica leads and knows all that there is; then its workers work."""
    if "operator" not in memo:
        memo.operator = await _development(settings)
    operator: Operator = memo.operator
    options = operator.options
    tune(settings, options.namespaces is None, options.installation.class_name)
    try:
        await operator.start()
    except OSError as error:
        raise kopf.PermanentError(f"the port of /healthz, /readyz and /metrics: {error}") from error


@kopf.on.login()
async def log_in(memo: Any, **_: Any) -> kopf.AiohttpSession:
    """Let kopf watch through connections that are looked at."""
    operator: Operator = memo.operator
    return kopf.AiohttpSession(
        server=operator.api.url, aiohttp_session=operator.watched_requests.session()
    )


@kopf.on.probe(id="problems")
async def problems(memo: Any, **_: Any) -> list[str]:
    """Tell why the operator is not ready; what /readyz says, too."""
    operator: Operator = memo.operator
    return list(operator.problems())


@kopf.on.cleanup()
async def stop(memo: Any, **_: Any) -> None:
    """End the workers, and let another replica lead."""
    operator: Operator = memo.operator
    await operator.stop()


async def seen(*, event: Any, memo: Any, param: Any = None, **_: Any) -> None:
    """Take note of an object of any kind."""
    operator: Operator = memo.operator
    kind: Kind = param
    if event["type"] == GONE:
        operator.caches.drop(kind, event["object"])
    else:
        operator.caches.put(kind, event["object"])


for _kind in WATCHED:
    kopf.on.event(
        group=_kind.group, version=_kind.version, plural=_kind.plural,
        id=f"{_kind.plural}.{_kind.group}", param=_kind,
    )(seen)  # fmt: skip


async def _development(settings: kopf.OperatorSettings) -> Operator:
    """Return the operator of `kopf run`."""
    options = from_environment()
    if settings.peering.clusterwide != (options.namespaces is None):
        raise kopf.PermanentError(
            f"-n must name the namespaces that {NAMESPACES} names, -A needs that unset"
        )
    # Whoever ran kopf has kopf's own handling of signals.
    try:
        api = await connect()
    except ConfigException as error:
        raise kopf.PermanentError(f"no cluster: {error}") from error
    return Operator(api, options, lambda: signal.raise_signal(signal.SIGTERM))
