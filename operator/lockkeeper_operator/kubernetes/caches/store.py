"""The objects of one kind, as they were last seen."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lockkeeper_operator.kubernetes.api.kinds import Kind
from lockkeeper_operator.kubernetes.caches.packing import Packing, trimmed
from lockkeeper_operator.kubernetes.manifests import Manifest

Name: TypeAlias = tuple[str, str]
"""Namespace and name of an object."""
Groups: TypeAlias = tuple[tuple[str, ...], ...]
"""What an object is looked up by, besides its name."""
GroupsOf: TypeAlias = Callable[[Manifest], Groups]
Mine: TypeAlias = Callable[[Manifest], bool]
Changed: TypeAlias = Callable[[Manifest | None, Manifest | None], None]
"""Is told of an object before and after a change; None where it was, or is, not there."""
GONE_MAX = 20_000
"""Objects that are remembered as gone, between two lists of all."""


@dataclass(slots=True)
class _Entry:
    """One object; *version* is its resourceVersion."""

    data: bytes
    version: int
    groups: Groups


class Store:
    """Objects of one kind by name, and by groups that *groups_of* puts them into.

    What is put again unchanged, or older than what is there, changes nothing. What is not *mine*
    is not kept: to the store it is as good as gone.
    """

    def __init__(
        self, kind: Kind, groups_of: GroupsOf, changed: Changed, mine: Mine = lambda _: True
    ) -> None:
        self.kind = kind
        self._groups_of = groups_of
        self._changed = changed
        self._mine = mine
        self._packing = Packing()
        self._entries: dict[Name, _Entry] = {}
        self._groups: dict[tuple[str, ...], set[Name]] = {}
        self._gone: dict[Name, int] = {}
        self._complete: dict[str | None, int] = {}
        self._awaited: dict[Name, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, namespace: str, name: str) -> Manifest | None:
        """Return an object with its version, or None."""
        entry = self._entries.get((namespace, name))
        if entry is None:
            return None
        found = self._packing.unpacked(entry.data)
        found["metadata"]["resourceVersion"] = str(entry.version)
        return found

    def all(self) -> Iterator[Manifest]:
        """Yield all objects."""
        for name in self.names():
            found = self.get(*name)
            if found is not None:
                yield found

    def names(self) -> Iterable[Name]:
        """Return the names of all objects."""
        return tuple(self._entries)

    def names_in(self, *group: str) -> tuple[Name, ...]:
        """Return the names of the objects of a group."""
        return tuple(self._groups.get(group, ()))

    def group(self, *group: str) -> Iterator[Manifest]:
        """Yield the objects of a group, by name."""
        for name in sorted(self.names_in(*group)):
            found = self.get(*name)
            if found is not None:
                yield found

    def put(self, manifest: Manifest) -> None:
        """Take over an object as the API server has it, or had it: the answer to a write may be
        older than the news that the object is gone.
        """
        name = _name_of(manifest)
        version = int(manifest["metadata"]["resourceVersion"])
        entry = self._entries.get(name)
        if version <= (self._gone_at(name) if entry is None else entry.version):
            return
        self._has_come(name, version)
        if not self._mine(manifest):
            if entry is not None:
                self.drop(manifest)
            return
        # Items of a list do not say what they are.
        own = {"apiVersion": self.kind.api_version, "kind": self.kind.name}
        kept = trimmed({**manifest, **own})
        data = self._packing.packed(kept)
        if entry is not None and data == entry.data:
            entry.version = version
            return
        before = None if entry is None else self._packing.unpacked(entry.data)
        groups = self._groups_of(kept)
        if entry is None:
            self._regroup(name, (), groups)
            self._entries[name] = _Entry(data, version, groups)
        else:
            if groups != entry.groups:
                self._regroup(name, entry.groups, groups)
                entry.groups = groups
            entry.data, entry.version = data, version
        self._changed(before, kept)

    def drop(self, manifest: Manifest) -> None:
        """Forget an object that is gone, unless a newer one of its name is there."""
        name, version = _name_of(manifest), int(manifest["metadata"]["resourceVersion"])
        entry = self._entries.get(name)
        if entry is not None and entry.version > version:
            return
        self._has_come(name, version)
        self._gone[name] = max(version, self._gone.pop(name, 0))
        if len(self._gone) > GONE_MAX:
            del self._gone[next(iter(self._gone))]
        if entry is not None:
            self._forget(name, entry)

    def keep_only(
        self, listed: Mapping[Name, int], namespace: str | None, version: str | None
    ) -> None:
        """Forget what is not among *listed*: all there was of *namespace* at *version*.

        Each has a version of its own. None stands for all namespaces, and for any version: the
        kind itself is gone.
        """
        at = None if version is None else int(version)
        for name, entry in tuple(self._entries.items()):
            unlisted = _is_in(namespace, name) and name not in listed
            if unlisted and (at is None or entry.version <= at):
                self._forget(name, entry)
        self._await(listed, namespace)
        if at is not None:
            self._complete[namespace] = max(at, self._complete.get(namespace, 0))
            for name in [name for name in self._gone if self._gone[name] <= self._all_since(name)]:
                del self._gone[name]

    def _await(self, listed: Mapping[Name, int], namespace: str | None) -> None:
        """Remember what was *listed* before any news of it came: a watch may be behind."""
        for name in [name for name in self._awaited if _is_in(namespace, name)]:
            del self._awaited[name]
        for name, version in listed.items():
            entry = self._entries.get(name)
            if version > (self._gone.get(name, 0) if entry is None else entry.version):
                self._awaited[name] = version

    def _has_come(self, name: Name, version: int) -> None:
        """Await an object no more if *version* is what was listed of it, or newer."""
        if version >= self._awaited.get(name, version + 1):
            del self._awaited[name]

    def _gone_at(self, name: Name) -> int:
        """Return the version up to which an object that is not there is known to be gone."""
        return max(self._gone.get(name, 0), self._all_since(name))

    def _all_since(self, name: Name) -> int:
        """Return the version up to which a list has told all there is of *name*."""
        if name in self._awaited:
            return self._awaited[name] - 1
        return max(self._complete.get(name[0], 0), self._complete.get(None, 0))

    def _forget(self, name: Name, entry: _Entry) -> None:
        del self._entries[name]
        self._regroup(name, entry.groups, ())
        self._changed(self._packing.unpacked(entry.data), None)

    def _regroup(self, name: Name, before: Groups, after: Groups) -> None:
        for group in before:
            members = self._groups[group]
            members.discard(name)
            if not members:
                del self._groups[group]
        for group in after:
            self._groups.setdefault(group, set()).add(name)


def _is_in(namespace: str | None, name: Name) -> bool:
    return namespace is None or name[0] == namespace


def _name_of(manifest: Manifest) -> Name:
    """Return the name of an object, in text that all have in common who keep it."""
    metadata = manifest["metadata"]
    return sys.intern(metadata.get("namespace", "")), sys.intern(metadata["name"])
