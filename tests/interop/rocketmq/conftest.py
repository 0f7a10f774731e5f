"""What the RocketMQ tests share: their folder, and that of the brokers."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
