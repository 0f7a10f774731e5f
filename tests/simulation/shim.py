"""Standing in for a module: some names are ours, all others the real module's."""

from types import ModuleType
from typing import Any


class Shim(ModuleType):
    """A module whose missing names are found in the real one."""

    def __init__(self, real: ModuleType, **names: Any) -> None:
        super().__init__(real.__name__)
        self.__dict__.update(names)
        self.__dict__["_real"] = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_real"], name)
