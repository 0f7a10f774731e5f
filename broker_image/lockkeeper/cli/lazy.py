"""Commands that are imported when they are called: listing them needs a line of help for each."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup


class Listed(NamedTuple):
    """A command: the module that has it, its function or Typer app there, its line of help."""

    module: str
    attribute: str
    help: str

    def load(self, name: str) -> Any:
        """Return the command itself. Raises ModuleNotFoundError when something is missing."""
        found = getattr(import_module(self.module), self.attribute)
        if isinstance(found, typer.Typer):
            return built(found)
        app = typer.Typer(add_completion=False)
        app.command(name)(found)
        return built(app)


def built(app: typer.Typer) -> Any:
    """Return what typer makes of an app; its help is plain text, which needs no import of rich."""
    app.rich_markup_mode = None
    return typer.main.get_command(app)


class LazyGroup(TyperGroup):
    """A group with a *table* of commands, and with *more* that are found when they are needed."""

    table: dict[str, Listed]
    more: Callable[[], dict[str, Any]]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._is_complete = False
        for name, listed in self.table.items():
            self.commands[name] = TyperCommand(name, help=listed.help)

    def list_commands(self, context: Any) -> list[str]:
        """Return the names of all commands."""
        self._complete()
        return super().list_commands(context)

    def resolve_command(self, context: Any, arguments: list[str]) -> Any:
        """Return name, command and further arguments; the command is imported now."""
        name = arguments[0]
        if name in self.table:
            self.commands[name] = self.table[name].load(name)
        elif not name.startswith("-"):
            self._complete()
        return super().resolve_command(context, arguments)

    def load_all(self) -> None:
        """Import every command of the table."""
        for name, listed in self.table.items():
            self.commands[name] = listed.load(name)
        self._complete()

    def _complete(self) -> None:
        if not self._is_complete:
            self._is_complete = True
            self.commands.update(type(self).more())
