"""Writes java_acks.json: what Java's client says to ActiveMQ in every case of ack_traffic.py.

`.venv/bin/python tests/client/record_java_acks.py`, after a case is added.
"""

import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "interop")]

import brokers  # noqa: E402
import java_project  # noqa: E402
from ack_traffic import CASES, JAVA_PROJECT, RECORDED, Javas, recorded_by_java  # noqa: E402


def main(directory: Path) -> None:
    """Record everything, with a broker that keeps its data in *directory*."""
    javas = Javas(java_project.build(JAVA_PROJECT))
    broker = brokers.start_broker("activemq", directory)
    try:
        found = {
            name: recorded_by_java(javas, case, f"RECORDED.{number}", broker)
            for number, (name, case) in enumerate(CASES.items())
        }
    finally:
        javas.stop()
        broker.stop()
    RECORDED.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(Path(made))
