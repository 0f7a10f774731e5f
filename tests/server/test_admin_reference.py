"""docs/reference/admin-api.md tells of every endpoint, and of no other."""

import re
from pathlib import Path

from lockkeeper.server.admin import Admin

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "admin-api.md"


def test_each_documented_endpoint_exists_and_each_endpoint_is_documented() -> None:
    documented = re.findall(r"^### `([A-Z]+ /[^`]*)`$", REFERENCE.read_text("utf-8"), re.M)
    admin = Admin(dict, lambda: None, lambda sources: "", lambda fenced: None)
    existing = [f"{route.method} {route.path}" for route in admin.routes()]
    assert sorted(documented) == sorted(existing)
    assert len(documented) == len(set(documented)) > 10
