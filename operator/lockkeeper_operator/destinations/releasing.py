"""Takes the finalizer from all Destinations, so that they can go without the operator."""

from collections.abc import Sequence

from lockkeeper_operator.destinations.plan import FINALIZER
from lockkeeper_operator.kubernetes.api.errors import CONFLICT, NOT_FOUND, ApiError
from lockkeeper_operator.kubernetes.api.kinds import DESTINATION
from lockkeeper_operator.kubernetes.api.server import ApiServer
from lockkeeper_operator.kubernetes.classes import class_selector, is_of
from lockkeeper_operator.kubernetes.manifests import Manifest

ATTEMPTS = 5


async def release_all(
    api: ApiServer, namespaces: Sequence[str] | None, class_name: str = ""
) -> int:
    """Release all Destinations of a class, or those of *namespaces*; returns how many had the
    finalizer.

    Raises ApiError.
    """
    places: Sequence[str | None] = (None,) if namespaces is None else namespaces
    found = [
        item
        for namespace in places
        async for items, _ in api.pages(DESTINATION, namespace, class_selector(class_name))
        for item in items
        if FINALIZER in item["metadata"].get("finalizers", ()) and is_of(class_name, item)
    ]
    for resource in found:
        await _release(api, resource)
    return len(found)


async def _release(api: ApiServer, resource: Manifest) -> None:
    present: Manifest | None = resource
    for _ in range(ATTEMPTS):
        if present is None:
            return
        metadata = present["metadata"]
        others = [each for each in metadata.get("finalizers", ()) if each != FINALIZER]
        version = metadata["resourceVersion"]
        change = {"metadata": {"resourceVersion": version, "finalizers": others}}
        try:
            await api.merge(DESTINATION, metadata["namespace"], metadata["name"], change)
            return
        except ApiError as error:
            if error.status == NOT_FOUND:
                return
            if error.status != CONFLICT:
                raise
        present = await api.read_if_there(DESTINATION, metadata["namespace"], metadata["name"])
    raise ApiError(CONFLICT, f"{metadata['namespace']}/{metadata['name']} changes all the time")
