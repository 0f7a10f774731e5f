"""The kit of the store's tests is beside them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from store_kit import Kit


@pytest.fixture
def kit() -> Kit:
    return Kit()
