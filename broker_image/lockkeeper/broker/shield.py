"""Listeners that harm nobody: what their methods raise is contained.

A module of its own, because objects of classes that mypyc compiles get no new attributes.
"""

from typing import Any, cast

from lockkeeper.broker.containment import Containment


class Shield:
    """Passes calls on, and contains what they raise: for whoever only listens."""

    def __init__(self, containment: Containment, target: object) -> None:
        self.containment = containment
        self.target = target

    def __getattr__(self, name: str) -> Any:
        """Return the target's own attribute; a method as one that raises nothing."""
        target = self.target
        found = getattr(target, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            try:
                return getattr(target, name)(*arguments, **named)
            except Exception as error:
                self.containment.note_error("telling", f"{type(target).__name__}.{name}", error)
                return None

        setattr(self, name, call)
        return cast("Any", call)
