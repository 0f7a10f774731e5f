"""What was measured, for the table in docs/operating/failover.md: `results/gaps.json`."""

import json
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def record_gap(what: str, seconds: float, seconds_max: float, messages: int) -> None:
    """Note a gap, and that so many messages were confirmed and none lost; it may not be longer."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "gaps.json"
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    known[what] = {"seconds": round(seconds, 2), "at most": seconds_max, "messages": messages}
    path.write_text(json.dumps(known, indent=1), "utf-8")
    print(f"{what}: {seconds:.2f} s without a confirmed message, {messages} confirmed, none lost")
    assert seconds < seconds_max, f"{what}: {seconds:.2f} s, {seconds_max:.0f} s at most"
