"""Children that no cache has: read when they are needed, for there are few of them."""

from collections.abc import Iterator, Sequence

from lockkeeper_api.pod_names import ROLE_LABEL
from lockkeeper_operator.kubernetes.api.errors import CONFLICT, NOT_FOUND, ApiError
from lockkeeper_operator.kubernetes.api.kinds import (
    CLAIM,
    JOURNAL_ANALYSIS,
    POD,
    Kind,
)
from lockkeeper_operator.kubernetes.api.server import APPLY, ApiServer
from lockkeeper_operator.kubernetes.children.field_owners import steadfast_owners
from lockkeeper_operator.kubernetes.children.steps import Apply, Create, Delete, Refused, Step
from lockkeeper_operator.kubernetes.manifests import Key, Manifest, key_of
from lockkeeper_operator.kubernetes.pods import has_volumes
from lockkeeper_operator.names import FIELD_MANAGER, MASTER

ENDED_PHASES = ("Succeeded", "Failed")


class UnwatchedChildren:
    """Reads and writes them. Every method raises ApiError."""

    def __init__(
        self,
        api: ApiServer,
        label: str,
        kinds: tuple[Kind, ...],
        optional: tuple[Kind, ...] = (),
    ) -> None:
        """Children are of these *kinds*, and have a *label* with the name of what they are of.

        The *optional* ones need not be known to the cluster.
        """
        self._api, self._label, self._kinds, self._optional = api, label, kinds, optional
        self._nodes: dict[tuple[str, str], str] = {}

    async def apis(self) -> frozenset[str]:
        """Return which APIs of the optional kinds the cluster knows."""
        names = {kind.api_version for kind in self._optional}
        return frozenset([name for name in names if await self._api.kinds_of(name)])

    async def children(
        self, namespace: str, name: str, apis: frozenset[str]
    ) -> dict[Key, Manifest]:
        """Return all objects that are labelled with the name; of optional kinds those of *apis*."""
        found: dict[Key, Manifest] = {}
        for kind in (*self._kinds, *(kind for kind in self._optional if kind.api_version in apis)):
            # Items of a list do not say what they are, and would pass for changed.
            own = {"apiVersion": kind.api_version, "kind": kind.name}
            for item in await self._all(kind, namespace, f"{self._label}={name}"):
                found[kind.name, item["metadata"]["name"]] = {**item, **own}
        return found

    async def pods(self, namespace: str, name: str) -> list[Manifest]:
        """Return the pods that are labelled with the name."""
        return await self._all(POD, namespace, f"{self._label}={name}")

    async def node_of_claim(self, namespace: str, claim: str, fresh: bool) -> str:
        """Return the node on which *claim* is in use, empty for none.

        It is not looked for again before that counts (*fresh*).
        """
        key = (namespace, claim)
        if fresh or key not in self._nodes:
            self._nodes[key] = node_of(await self.user_of_claim(namespace, claim))
        return self._nodes[key]

    async def user_of_claim(
        self, namespace: str, claim: str, apart_from: str | None = None
    ) -> Manifest | None:
        """Return the pod that has *claim* on a node, or waits for it there, None for none.

        Whose volumes are where is not told by labels: all pods of the namespace are looked at,
        *apart_from* those that are labelled with that name.
        """
        if not claim:
            return None
        pods = await self._all(POD, namespace)
        return user_of_claim([pod for pod in pods if self._name_of(pod) != apart_from], claim)

    async def claim(self, namespace: str, name: str) -> Manifest | None:
        """Return a claim, None where there is none."""
        return await self._api.read_if_there(CLAIM, namespace, name) if name else None

    async def carry_out(
        self, steps: Sequence[Step], namespace: str
    ) -> tuple[list[Refused], list[Manifest]]:
        """Do the *steps*; returns what the API server does not take, and what was there already.

        Raises ApiError for what may work later.
        """
        refused: list[Refused] = []
        unseen: list[Manifest] = []
        for step in steps:
            match step:
                case Create(manifest):
                    present = await self._read(manifest)
                    if present is not None:
                        unseen.append({**present, "kind": manifest["kind"]})
                    else:
                        refused += await self._apply(manifest)
                case Apply(manifest):
                    refused += await self._apply(manifest)
                case Delete(kind, name, uid):
                    await self._delete(kind, namespace, name, uid)
                case _:
                    continue
        return refused, unseen

    async def _all(self, kind: Kind, namespace: str, selector: str = "") -> list[Manifest]:
        return [
            item async for page, _ in self._api.pages(kind, namespace, selector) for item in page
        ]

    async def _read(self, manifest: Manifest) -> Manifest | None:
        metadata = manifest["metadata"]
        kind = self._kind_of(manifest)
        return await self._api.read_if_there(kind, metadata["namespace"], metadata["name"])

    async def _apply(self, manifest: Manifest) -> list[Refused]:
        """Apply a child; what somebody else applies of it stays theirs, and is told."""
        try:
            try:
                await self._patch(manifest, force=False)
            except ApiError as error:
                if error.status != CONFLICT:
                    raise
                owners = steadfast_owners(error)
                if owners:
                    return [Refused(*key_of(manifest), f"belongs to {owners}")]
                await self._patch(manifest, force=True)
        except ApiError as error:
            if not error.is_refusal:
                raise
            return [Refused(*key_of(manifest), error.message)]
        return []

    async def _patch(self, manifest: Manifest, force: bool) -> None:
        metadata = manifest["metadata"]
        path = self._kind_of(manifest).path(metadata["namespace"], metadata["name"])
        query = {"fieldManager": FIELD_MANAGER, "force": "true" if force else "false"}
        await self._api.request("PATCH", path, query, manifest, APPLY)

    async def _delete(self, kind: str, namespace: str, name: str, uid: str) -> None:
        for each in (JOURNAL_ANALYSIS, *self._kinds, *self._optional):
            if each.name == kind:
                try:
                    await self._api.delete(each, namespace, name, uid)
                except ApiError as error:
                    # The other operator's kind of that name, or a successor.
                    if error.status not in (NOT_FOUND, CONFLICT):
                        raise

    def _name_of(self, pod: Manifest) -> str:
        """Return the name of what *pod* is of, empty for what it is not."""
        return str(pod["metadata"].get("labels", {}).get(self._label, ""))

    def _kind_of(self, manifest: Manifest) -> Kind:
        """Return the kind of a child, by its API, too: two operators have a SparkApplication."""
        wanted = (manifest["apiVersion"], manifest["kind"])
        known = (*self._kinds, *self._optional)
        return next(kind for kind in known if (kind.api_version, kind.name) == wanted)


def user_of_claim(pods: Sequence[Manifest], claim: str) -> Manifest | None:
    """Return which of *pods* uses *claim* on a node, None for none.

    One that has mounted the volume is before those that wait for it, then the master's before
    others.
    """
    users = [pod for pod in pods if claim in _claims(pod) and node_of(pod)]
    users = [pod for pod in users if pod.get("status", {}).get("phase") not in ENDED_PHASES]
    return min(users, key=_distance, default=None)


def _distance(pod: Manifest) -> tuple[bool, bool]:
    """Return how far a pod is from having the volume as the Broker's master has it."""
    return not has_volumes(pod), pod["metadata"].get("labels", {}).get(ROLE_LABEL) != MASTER


def node_of(pod: Manifest | None) -> str:
    """Return the node that a pod is on, empty for none."""
    return "" if pod is None else str(pod["spec"].get("nodeName") or "")


def _claims(pod: Manifest) -> Iterator[str]:
    for volume in pod.get("spec", {}).get("volumes", ()):
        source = volume.get("persistentVolumeClaim")
        if source is not None:
            yield source["claimName"]
