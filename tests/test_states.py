"""State machines: their tables are whole, refuse what they do not name, and are on the page."""

import sys
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from states_page import MACHINES, PAGE, page

from lockkeeper.states import StateMachine, WrongStateError
from lockkeeper.store.base import REMOVED, VOLATILE, Reference

TABLES = [machine for machine, _ in MACHINES.values()]


class Door(Enum):
    SHUT = "shut"
    WIDE = "wide"


DOOR = StateMachine("a door", (Door.SHUT,), {Door.SHUT: {"open": Door.WIDE}, Door.WIDE: {}})


def test_an_event_leads_where_the_table_says() -> None:
    assert DOOR.after(Door.SHUT, "open") is Door.WIDE
    assert DOOR.leads(Door.SHUT, Door.WIDE)
    assert not DOOR.leads(Door.WIDE, Door.SHUT)


@pytest.mark.parametrize(("state", "event"), [(Door.WIDE, "open"), (Door.SHUT, "paint")])
def test_any_other_event_is_refused(state: Door, event: str) -> None:
    with pytest.raises(WrongStateError, match=f"a door: `{event}` .* while it is {state.name}"):
        DOOR.after(state, event)


def test_a_diagram_shows_every_arrow() -> None:
    assert DOOR.diagram().splitlines() == [
        "stateDiagram-v2",
        "    [*] --> SHUT",
        "    SHUT --> WIDE: open",
        "    WIDE --> [*]",
    ]


@pytest.mark.parametrize("machine", TABLES, ids=lambda machine: machine.name)
def test_every_state_of_a_table_can_be_reached(machine: StateMachine[Any]) -> None:
    reached, new = set[Enum](), set(machine.begins)
    while new:
        reached |= new
        new = {to for each in new for to in machine.transitions[each].values()} - reached
    assert reached == set(machine.transitions)


def test_the_page_is_what_the_tables_say() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `make diagrams`"


def test_a_message_that_leaves_the_table_would_be_seen() -> None:
    reference = Reference(None, 1)
    assert reference.state is VOLATILE
    with pytest.raises(WrongStateError, match=r"from .*VOLATILE.* to .*REMOVED"):
        reference.state = REMOVED
