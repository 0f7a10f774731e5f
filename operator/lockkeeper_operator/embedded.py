"""The operator as it runs in production: kopf, embedded."""

import asyncio
from collections.abc import Callable

import kopf

import lockkeeper_operator.handlers  # noqa: F401  # They register themselves.
from lockkeeper_operator.kopf_settings import NoMemories
from lockkeeper_operator.kubernetes.api.server import connect
from lockkeeper_operator.process.operator import Operator
from lockkeeper_operator.process.options import Options

REGISTRY = kopf.get_default_registry()
"""Where the handlers are."""


class Memo(kopf.Memo):
    """What handlers are given: one for all objects, not a copy for each of them."""

    def __copy__(self) -> "Memo":
        return self


async def run(
    options: Options,
    kubeconfig: str | None = None,
    begun: Callable[[Operator], None] = lambda _: None,
) -> bool:
    """Work until stopped; returns whether that was for a good reason.

    *begun* is told of the operator. Raises kubernetes.aio.config.ConfigException where there is
    no cluster.
    """
    stop = asyncio.Event()
    api = await connect(kubeconfig)
    # kopf waits for whoever waits for its flag: some seconds, unless that is set in the end.
    operator = Operator(api, options, stop.set, stopped=stop.set)
    begun(operator)
    clusterwide = options.namespaces is None
    await kopf.operator(
        registry=REGISTRY,
        memories=NoMemories(),
        memo=Memo(operator=operator),
        clusterwide=clusterwide,
        namespaces=options.namespaces or (),
        standalone=True,
        stop_flag=stop,
    )
    return not operator.failure
