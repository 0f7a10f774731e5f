"""Whether an object already is what it is to be."""

from typing import Any

from lockkeeper_operator.quantities import quantity

AMOUNTS = ("requests", "limits")
"""Keys of mappings whose values are quantities."""


def covers(present: Any, wanted: Any, amounts: bool = False) -> bool:
    """Return whether *present* has all that is *wanted*, and perhaps more.

    More is what the API server fills in, and what others own. Lists of named items are compared
    by name, other lists item by item. Values of *amounts* may be written differently.
    """
    if isinstance(wanted, dict):
        if present is None:
            return not wanted
        return isinstance(present, dict) and all(
            covers(present.get(key), value, key in AMOUNTS or amounts)
            for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return _list_covers(present or [], wanted)
    if amounts and quantity(wanted) is not None:
        return quantity(present) == quantity(wanted)
    return bool(present == wanted)


def _list_covers(present: Any, wanted: list[Any]) -> bool:
    if not isinstance(present, list):
        return False
    if wanted and all(isinstance(item, dict) and "name" in item for item in wanted):
        named = {item.get("name"): item for item in present if isinstance(item, dict)}
        return all(covers(named.get(item["name"]), item) for item in wanted)
    return len(present) == len(wanted) and all(map(covers, present, wanted))
