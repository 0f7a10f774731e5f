"""Writes the status of Destinations, as often as it says something new."""

from lockkeeper_operator.destinations.status.facts import DestinationFacts
from lockkeeper_operator.destinations.status.status import destination_status
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.tools import Tools

FIGURES_SECONDS = 60.0
"""How often a status is written at most of which nothing but figures has changed."""


class Teller:
    """Remembers when each status was written."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._written: dict[tuple[str, str], float] = {}

    def forget(self, namespace: str, name: str) -> None:
        """Forget a Destination that is gone."""
        self._written.pop((namespace, name), None)

    async def tell(self, resource: Manifest, facts: DestinationFacts) -> float | None:
        """Write the status if it says something new; figures alone wait for a while.

        Returns the seconds until then, None where nothing waits. Raises ApiError.
        """
        metadata, previous = resource["metadata"], resource.get("status", {})
        clock = self._tools.clock
        status = destination_status(facts, previous, metadata["generation"], clock.text())
        if status is None:
            return None
        name = (metadata["namespace"], metadata["name"])
        now = clock.monotonic()
        wait = self._written.get(name, -FIGURES_SECONDS) + FIGURES_SECONDS - now
        if wait > 0 and _without_figures(status) == _without_figures(previous):
            return wait
        self._written[name] = now
        await self._tools.write_status(resource, status)
        return None


def _without_figures(status: Manifest) -> Manifest:
    return {name: status.get(name) for name in ("observedGeneration", "conditions", "name")}
