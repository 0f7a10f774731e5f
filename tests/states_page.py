"""Writes docs/reference/states.md from the tables of the state machines: `make diagrams`."""

from pathlib import Path
from typing import Any

from lockkeeper.broker.transactions import TRANSACTIONS
from lockkeeper.protocols.openwire.phases import PHASES
from lockkeeper.server.roles import ROLES
from lockkeeper.states import StateMachine
from lockkeeper.store.base import MESSAGE_STATES

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "states.md"
MACHINES: dict[str, tuple[StateMachine[Any], str]] = {
    "A process": (
        ROLES,
        "Its log, its status, the label of its pod and the metric `lockkeeper_role` name the role. "
        "A failure leads to STOPPED from everywhere.",
    ),
    "An OpenWire connection": (
        PHASES,
        "Messages and acknowledgements are taken only while it is OPEN.",
    ),
    "A transaction": (
        TRANSACTIONS,
        "`lockkeeper transactions` lists the prepared ones. Whatever is OPEN or FAILED is rolled "
        "back when its connection ends.",
    ),
    "A message in the store": (
        MESSAGE_STATES,
        "VOLATILE messages are not persistent. WRITTEN is durable once its receipt was given back.",
    ),
}
INTRODUCTION = """\
# States

Written by `make diagrams` from the tables in the code. Do not edit.

Each table is the only place that says what may follow what: an event that is not in it is refused,
and for messages, whose states are assigned without a call, the tests refuse it.
"""


def page() -> str:
    """Return the page."""
    sections = (
        f"\n## {title}\n\n{text}\n\n```mermaid\n{machine.diagram()}\n```\n"
        for title, (machine, text) in MACHINES.items()
    )
    return INTRODUCTION + "".join(sections)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
