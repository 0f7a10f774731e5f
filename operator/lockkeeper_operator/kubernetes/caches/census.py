"""Lists whole kinds: everything at first, and later which objects there still are.

A watch that was away for too long tells of what came meanwhile, never of what went.
"""

from lockkeeper_operator.kubernetes.api.errors import NOT_FOUND, ApiError
from lockkeeper_operator.kubernetes.api.kinds import OPTIONAL_KINDS
from lockkeeper_operator.kubernetes.api.server import ApiServer
from lockkeeper_operator.kubernetes.api.watching import Place
from lockkeeper_operator.kubernetes.caches.caches import Caches, selector_of
from lockkeeper_operator.kubernetes.caches.store import Name


class Census:
    """Brings the stores to what the API server has."""

    def __init__(self, api: ApiServer, caches: Caches) -> None:
        self._api, self._caches = api, caches

    async def fill(self, place: Place) -> bool:
        """Put all objects of a place into its store; False where there is no such kind.

        Raises ApiError.
        """
        return await self._count(place, whole=True)

    async def count(self, place: Place) -> bool:
        """Forget which objects of a place are gone; False where there is no such kind.

        Raises ApiError.
        """
        return await self._count(place, whole=False)

    async def _count(self, place: Place, whole: bool) -> bool:
        listed: dict[Name, int] = {}
        version: str | None = None
        kind, namespace = place.kind, place.namespace
        selector = selector_of(kind, self._caches.class_name)
        pages = self._api.pages(kind, namespace, selector, metadata_only=not whole)
        try:
            async for items, listed_at in pages:
                version = listed_at
                for item in items:
                    metadata = item["metadata"]
                    name = metadata.get("namespace", ""), metadata["name"]
                    listed[name] = int(metadata["resourceVersion"])
                    if whole:
                        self._caches.put(kind, item)
        except ApiError as error:
            # Only what the cluster need not have may be absent.
            if error.status != NOT_FOUND or kind not in OPTIONAL_KINDS:
                raise
            listed.clear()
            version = None
        self._caches.keep_only(kind, listed, namespace, version)
        return version is not None
