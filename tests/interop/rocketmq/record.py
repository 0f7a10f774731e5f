"""Writes outcomes.json: what scenarios see with a real RocketMQ, all of them or those named.

`python tests/interop/rocketmq/record.py [SCENARIO…]`; it takes some minutes.
"""

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import rocketmq_scenarios  # noqa: E402
from reference import start_rocketmq  # noqa: E402
from rocketmq_scenarios import LINES, OUTCOMES, keep_outcomes, known_outcomes  # noqa: E402


def main() -> int:
    """Record; the exit code is 1 when a scenario failed, whose outcome stays as it was."""
    outcomes = known_outcomes() if OUTCOMES.exists() else {}
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        broker = start_rocketmq(Path(scratch) / "server")
        try:
            seen = {
                version: rocketmq_scenarios.run(
                    version,
                    sys.argv[1:] or sorted(rocketmq_scenarios.names(version)),
                    broker.port,
                    Path(scratch) / version,
                )
                for version in LINES
            }
        finally:
            broker.kill()
    for version, reports in seen.items():
        for scenario, report in reports.items():
            if report.error is None:
                outcomes.setdefault(scenario, {})[version] = report.facts
            else:
                failed = 1
                print(f"{scenario} with {version} failed: {report.error}", file=sys.stderr)
    keep_outcomes(outcomes)
    return failed


if __name__ == "__main__":
    sys.exit(main())
