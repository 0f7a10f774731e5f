"""Takes out of children what may not be in them."""

import asyncio
import logging
from collections.abc import Iterable
from typing import TypeAlias

from lockkeeper_operator.kubernetes.api.errors import CONFLICT, INVALID, ApiError
from lockkeeper_operator.kubernetes.api.kinds import BY_NAME
from lockkeeper_operator.kubernetes.api.server import ApiServer
from lockkeeper_operator.kubernetes.children.comparing import Path, added
from lockkeeper_operator.kubernetes.children.field_owners import appliers_of, pointer, written
from lockkeeper_operator.kubernetes.children.steps import Conflict
from lockkeeper_operator.kubernetes.manifests import Manifest, key_of

Uid: TypeAlias = str
REMOVALS_MAX, REMOVALS_SECONDS = 5, 60.0
"""Who adds the same more often in so long a time is not fought: that would never end."""
log = logging.getLogger(__name__)


class Clearing:
    """Knows what came back, and how often."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._tolerated: dict[Uid, frozenset[Path]] = {}
        self._removals: dict[Uid, list[float]] = {}

    def tolerated(self, child: Manifest) -> frozenset[Path]:
        """Return what was in a child again in the answer to its removal: whoever adds it to
        whatever is written, as admission does, would for ever.
        """
        return self._tolerated.get(child["metadata"].get("uid", ""), frozenset())

    def forget(self, children: Iterable[Manifest]) -> None:
        """Forget children that go."""
        for child in children:
            self._tolerated.pop(child["metadata"].get("uid", ""), None)
            self._removals.pop(child["metadata"].get("uid", ""), None)

    async def cleared(self, present: Manifest, manifest: Manifest) -> Manifest | Conflict:
        """Return an object without what may not be in it, or whose that is. Raises ApiError."""
        more = added(present, manifest)
        if more <= self.tolerated(present):
            return present
        owners = appliers_of(present, more)
        if not owners and self._is_fought(present["metadata"]["uid"]):
            owners = f"whoever adds {_listed(more)} again and again"
        if owners:
            return Conflict(*key_of(manifest), owners)
        return await self._without(present, manifest, more)

    def _is_fought(self, uid: Uid) -> bool:
        """Return whether something was removed too often; if not, it is now once more."""
        now = asyncio.get_running_loop().time()
        recent = [at for at in self._removals.get(uid, ()) if now - at < REMOVALS_SECONDS]
        if len(recent) < REMOVALS_MAX:
            recent.append(now)
        self._removals[uid] = recent
        return len(recent) == REMOVALS_MAX and recent[-1] != now

    async def _without(
        self, child: Manifest, manifest: Manifest, more: frozenset[Path]
    ) -> Manifest:
        """Remove *more* from a child as it stands at present."""
        metadata, kind = child["metadata"], BY_NAME[manifest["kind"]]
        tests = [
            {"op": "test", "path": f"/metadata/{name}", "value": metadata[name]}
            for name in ("uid", "resourceVersion")
        ]
        # The last items of lists first: their numbers are what they are until then.
        removed = [
            {"op": "remove", "path": pointer(path)}
            for path in sorted(more, key=_order, reverse=True)
        ]
        try:
            left = await self._api.revise(
                kind, metadata["namespace"], metadata["name"], tests + removed
            )
        except ApiError as error:
            if error.status != INVALID:
                raise
            # It has changed since, and is looked at again.
            raise ApiError(CONFLICT, error.message) from error
        log.info(
            "%s %s: the operator removed fields that somebody had added: %s",
            kind.name,
            metadata["name"],
            _listed(more),
        )
        again = added(left, manifest)
        if again:
            self._tolerated[metadata["uid"]] = again
        return left


def _listed(paths: Iterable[Path]) -> str:
    return ", ".join(sorted(map(written, paths)))


def _order(path: Path) -> tuple[tuple[bool, int, str], ...]:
    return tuple(
        (isinstance(key, str), 0 if isinstance(key, str) else key, str(key)) for key in path
    )
