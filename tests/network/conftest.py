"""What the tests of bridges share: where their modules are."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]
