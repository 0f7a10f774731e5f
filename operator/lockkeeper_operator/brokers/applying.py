"""Carries out the steps of a Broker's plan."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lockkeeper_operator.brokers.steps import DeletePod, Fence, Push, Step, SwitchOver
from lockkeeper_operator.kubernetes.api.errors import CONFLICT, INVALID, NOT_FOUND, ApiError
from lockkeeper_operator.kubernetes.api.kinds import BY_NAME, OPTIONAL_KINDS, POD
from lockkeeper_operator.kubernetes.api.server import ApiServer
from lockkeeper_operator.kubernetes.caches.caches import Caches
from lockkeeper_operator.kubernetes.children.answers import Answers
from lockkeeper_operator.kubernetes.children.clearing import Clearing
from lockkeeper_operator.kubernetes.children.field_owners import steadfast_owners
from lockkeeper_operator.kubernetes.children.steps import Apply, Conflict, Create, Delete, Refused
from lockkeeper_operator.kubernetes.manifests import Key, Manifest, key_of
from lockkeeper_operator.polling.admin_endpoint import (
    Address,
    AdminEndpoints,
    BrokerRefusedError,
    BrokerSilentError,
)

OPTIONAL = frozenset(kind.name for kind in OPTIONAL_KINDS)
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Outcome:
    """What came of steps.

    *unseen* are children that were there although the caches do not have them, *problems* what
    was not done because of others, or because the API server does not take it, *unchanged* what
    was as it was asked for already, in the API server's own words, *untaken* what brokers were
    told and did not take.
    """

    unseen: dict[Key, Manifest] = field(default_factory=dict)
    problems: list[Conflict | Refused] = field(default_factory=list)
    unchanged: set[Key] = field(default_factory=set)
    untaken: list[Push | Fence] = field(default_factory=list)


class Applier:
    """Knows how each step is done."""

    def __init__(
        self,
        api: ApiServer,
        caches: Caches,
        admin: AdminEndpoints,
        absent: Callable[[str], None],
    ) -> None:
        """*absent* is told of a kind that the cluster does not know, and need not."""
        self._api, self._caches, self._admin, self._absent = api, caches, admin, absent
        self.clearing = Clearing(api)
        self.answers = Answers()

    async def carry_out(
        self,
        steps: Sequence[Step],
        namespace: str,
        addresses: Mapping[str, Address],
        configuration: str,
    ) -> Outcome:
        """Do the *steps* in their order; *addresses* are of pods, by name.

        Raises ApiError for what may work later; what will not is told in the outcome.
        """
        outcome = Outcome()
        for step in steps:
            match step:
                case Create(manifest):
                    await self._create(manifest, outcome)
                case Apply(manifest):
                    await self._apply(manifest, outcome)
                case Delete(kind, name, uid):
                    await self._api.delete(BY_NAME[kind], namespace, name, uid)
                case DeletePod(name, uid) | SwitchOver(name, uid):
                    await self._api.delete(POD, namespace, name, uid)
                case Push(pod) | Fence(pod):
                    if not await self._told(step, addresses.get(pod), configuration):
                        outcome.untaken.append(step)
                case _:
                    continue
        return outcome

    async def _create(self, manifest: Manifest, outcome: Outcome) -> None:
        """Make a child that no cache has, unless there is an object of its name all the same.

        Server-side apply would take it over, whoever's it is.
        """
        present = await self._read(manifest)
        if present is None:
            await self._apply(manifest, outcome)
        else:
            outcome.unseen[key_of(manifest)] = {"kind": manifest["kind"], **present}

    async def _apply(self, manifest: Manifest, outcome: Outcome) -> None:
        kind, name = key_of(manifest)
        try:
            applied = await self._applied(manifest)
        except ApiError as error:
            if error.status == NOT_FOUND and kind in OPTIONAL:
                self._absent(kind)
                return
            if not error.is_refusal:
                raise
            outcome.problems.append(Refused(kind, name, error.message))
            return
        if isinstance(applied, Conflict):
            outcome.problems.append(applied)
            return
        self.answers.note(manifest, applied)
        store = self._caches.children.get(kind)
        if store is not None:
            before = store.get(manifest["metadata"]["namespace"], name)
            if before is not None and _version(before) == _version(applied):
                outcome.unchanged.add((kind, name))
            store.put(applied)

    async def _applied(self, manifest: Manifest) -> Manifest | Conflict:
        """Return an object as it is once it is applied, or whose it is."""
        try:
            applied = await self._merged(manifest)
        except ApiError as error:
            if error.status != INVALID:
                raise
            # What was added may stand against what is wanted: privileged against restricted.
            present = await self._read(manifest)
            cleared = present and await self.clearing.cleared(present, manifest)
            if cleared is present or isinstance(cleared, Conflict):
                raise
            applied = await self._merged(manifest)
        return (
            applied
            if isinstance(applied, Conflict)
            else await self.clearing.cleared(applied, manifest)
        )

    async def _merged(self, manifest: Manifest) -> Manifest | Conflict:
        """Return an object that has all that is wanted, or whose it is."""
        try:
            return await self._api.apply(manifest)
        except ApiError as error:
            if error.status != CONFLICT:
                raise
            owners = steadfast_owners(error)
            if owners:
                return Conflict(*key_of(manifest), owners)
        return await self._api.apply(manifest, force=True)

    async def _read(self, manifest: Manifest) -> Manifest | None:
        metadata = manifest["metadata"]
        kind = BY_NAME[manifest["kind"]]
        return await self._api.read_if_there(kind, metadata["namespace"], metadata["name"])

    async def _told(self, step: Push | Fence, address: Address | None, text: str) -> bool:
        """Tell a broker its configuration, which is *text*, or whether it is fenced.

        Returns whether it took that; what it makes of it, it reports.
        """
        if address is None:
            return False
        try:
            match step:
                case Push(_, configuration):
                    await self._admin.configure(address, text, configuration)
                case Fence(_, fenced):
                    await self._admin.fence(address, fenced)
        except (BrokerRefusedError, BrokerSilentError) as error:
            log.warning("broker %s did not take %s: %s", address.host, step, error)
            return False
        return True


def _version(manifest: Manifest) -> str:
    return str(manifest["metadata"]["resourceVersion"])
