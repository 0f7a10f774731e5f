"""References by names, of which one may be that of very many; each is found at once."""

from lockkeeper.store.base import Reference


class Names:
    """References, each under one name."""

    __slots__ = ("_named",)

    def __init__(self) -> None:
        # In dicts, since one of very many that have the same name is to be taken out at once.
        self._named: dict[str, dict[Reference, None]] = {}

    def add(self, name: str, reference: Reference) -> None:
        """Have a reference found by a name."""
        self._named.setdefault(name, {})[reference] = None

    def remove(self, name: str, reference: Reference) -> None:
        """Have a reference that has this name found no more."""
        same = self._named[name]
        del same[reference]
        if not same:
            del self._named[name]

    def count(self, name: str) -> int:
        """Return how many have this name."""
        return len(self._named.get(name, ()))

    def of(self, name: str) -> list[Reference]:
        """Return those that have this name, the first one first."""
        return [*self._named.get(name, ())]

    def clear(self) -> None:
        """Forget them all."""
        self._named.clear()
