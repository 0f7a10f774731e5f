"""The objects of one kind, as they were last seen."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from lockkeeper_operator.api.kinds import Kind
from lockkeeper_operator.caches.packing import packed, trimmed, unpacked
from lockkeeper_operator.observed import Manifest

Name: TypeAlias = tuple[str, str]
"""Namespace and name of an object."""
Groups: TypeAlias = tuple[tuple[str, ...], ...]
"""What an object is looked up by, besides its name."""
GroupsOf: TypeAlias = Callable[[Manifest], Groups]
Changed: TypeAlias = Callable[[Manifest | None, Manifest | None], None]
"""Is told of an object before and after a change; None where it was, or is, not there."""


@dataclass(slots=True)
class _Entry:
    """One object; *version* is its resourceVersion."""

    data: bytes
    version: int
    groups: Groups


class Store:
    """Objects of one kind by name, and by groups that *groups_of* puts them into.

    What is put again unchanged, or older than what is there, changes nothing.
    """

    def __init__(self, kind: Kind, groups_of: GroupsOf, changed: Changed) -> None:
        self.kind = kind
        self._groups_of = groups_of
        self._changed = changed
        self._entries: dict[Name, _Entry] = {}
        self._groups: dict[tuple[str, ...], set[Name]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, namespace: str, name: str) -> Manifest | None:
        """Return an object with its version, or None."""
        entry = self._entries.get((namespace, name))
        if entry is None:
            return None
        found = unpacked(entry.data)
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
        """Take over an object as the API server has it."""
        name = _name_of(manifest)
        version = int(manifest["metadata"]["resourceVersion"])
        entry = self._entries.get(name)
        if entry is not None and version <= entry.version:
            return
        # Items of a list do not say what they are.
        own = {"apiVersion": self.kind.api_version, "kind": self.kind.name}
        kept = trimmed({**manifest, **own})
        data = packed(kept)
        if entry is not None and data == entry.data:
            entry.version = version
            return
        before = None if entry is None else unpacked(entry.data)
        groups = self._groups_of(kept)
        self._regroup(name, () if entry is None else entry.groups, groups)
        self._entries[name] = _Entry(data, version, groups)
        self._changed(before, kept)

    def drop(self, manifest: Manifest) -> None:
        """Forget an object that is gone, unless a newer one of its name is there."""
        name = _name_of(manifest)
        entry = self._entries.get(name)
        if entry is not None and entry.version <= int(manifest["metadata"]["resourceVersion"]):
            self._forget(name, entry)

    def keep_only(self, names: set[Name], namespace: str | None, version: str) -> None:
        """Forget what is not among *names*, which were all there of *namespace* at *version*."""
        for name, entry in tuple(self._entries.items()):
            inside = namespace is None or name[0] == namespace
            if inside and name not in names and entry.version <= int(version):
                self._forget(name, entry)

    def _forget(self, name: Name, entry: _Entry) -> None:
        del self._entries[name]
        self._regroup(name, entry.groups, ())
        self._changed(unpacked(entry.data), None)

    def _regroup(self, name: Name, before: Groups, after: Groups) -> None:
        if before == after:
            return
        for group in before:
            members = self._groups[group]
            members.discard(name)
            if not members:
                del self._groups[group]
        for group in after:
            self._groups.setdefault(group, set()).add(name)


def _name_of(manifest: Manifest) -> Name:
    metadata = manifest["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
