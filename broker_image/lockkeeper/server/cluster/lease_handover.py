"""Lease of a process of this pod that died: its successor gives it back at once.

Whoever stands by waits for it, with the file lock in hand. A broker's libraries take a second or
two to load; this comes before them and does with Python's own.
"""

import contextlib
import json
import ssl
import urllib.request
from typing import Any

from lockkeeper.server.cluster.election import freed, read_lease, written_lease
from lockkeeper.server.cluster.pod_environment import ApiServerAccess, PodEnvironment, now_text

ANSWER_SECONDS_MAX = 1.0
ANSWER_BYTES_MAX = 1 << 20


def give_back_inherited_lease(where: PodEnvironment | None) -> bool:
    """Free the Lease if it is held in the name of this pod; tells whether it was.

    What goes wrong is left to the process's own locker, which does the same a little later. A
    StatefulSet's pods have the name of their Broker and a number.
    """
    if where is None or where.api_server is None or where.pod.ordinal is None:
        return False
    path = where.lease_path(where.pod.name.rpartition("-")[0])
    with contextlib.suppress(OSError, ValueError, LookupError, AttributeError):
        lease = _ask(where.api_server, path)
        found = read_lease(lease)
        if found.holder == where.pod.holder:
            _ask(where.api_server, path, written_lease(lease, freed(found, now_text())))
            return True
    return False


def _ask(access: ApiServerAccess, path: str, value: dict[str, Any] | None = None) -> Any:
    """Return what is at *path*, after *value* was put there if there is one. Raises OSError."""
    headers = {"Content-Type": "application/json"}
    if access.token_file is not None:
        headers["Authorization"] = f"Bearer {access.token_file.read_text('ascii').strip()}"
    request = urllib.request.Request(
        f"{access.url}{path}",
        None if value is None else json.dumps(value).encode(),
        headers,
        method="GET" if value is None else "PUT",
    )
    context = None
    if access.authority_file is not None:
        context = ssl.create_default_context(cafile=str(access.authority_file))
    handlers = [urllib.request.HTTPSHandler(context=context)] if context else []
    # Nothing stands between a pod and its API server, whatever the environment says of proxies.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), *handlers)
    with opener.open(request, timeout=ANSWER_SECONDS_MAX) as answer:
        return json.loads(answer.read(ANSWER_BYTES_MAX))
