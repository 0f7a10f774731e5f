"""State machines: the states of one kind of thing, and one table of what leads to which."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final, Generic, TypeVar

S = TypeVar("S", bound=Enum)


class WrongStateError(Exception):
    """An event that cannot happen in the state that something is in: a defect of the program."""


class StateMachine(Generic[S]):
    """The transitions of one kind of thing; it knows no thing itself.

    `begins` are the states that a thing may have from the start. `transitions` say for each state
    which events may happen in it, and to which state each of them leads.
    """

    def __init__(
        self, name: str, begins: tuple[S, ...], transitions: Mapping[S, Mapping[str, S]]
    ) -> None:
        self.name: Final = name
        self.begins: Final = begins
        self.transitions: Final = transitions

    def after(self, state: S, event: str) -> S:
        """Return the state that *event* leads to. Raises WrongStateError."""
        try:
            return self.transitions[state][event]
        except KeyError:
            raise WrongStateError(
                f"{self.name}: `{event}` cannot happen while it is {state.name}"
            ) from None

    def leads(self, state: S, to: S) -> bool:
        """Tell whether some event leads from one state to another."""
        return to in self.transitions.get(state, {}).values()

    def diagram(self) -> str:
        """Return a Mermaid state diagram."""
        return "\n".join(("stateDiagram-v2", *(f"    {line}" for line in self._arrows())))

    def _arrows(self) -> Iterator[str]:
        for state in self.begins:
            yield f"[*] --> {state.name}"
        for state, events in self.transitions.items():
            for event, to in events.items():
                yield f"{state.name} --> {to.name}: {event}"
            if not events:
                yield f"{state.name} --> [*]"
