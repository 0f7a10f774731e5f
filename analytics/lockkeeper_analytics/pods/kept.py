"""Records of an analysis that are kept: journals are added to a history, which is analysed."""

import json
import sys
from collections.abc import Sequence

from lockkeeper_analytics.history.keeping import keep
from lockkeeper_analytics.reading.kept import folder_of
from lockkeeper_analytics.reading.storage import beside
from lockkeeper_analytics.tables.options import parse_options


def kept_in(
    history: str, journals: Sequence[str], broker: str = "", skip_corrupt: bool = False
) -> list[str]:
    """Add what is new in *journals* to *history*, and return the folders there of their brokers.

    *broker* names the records of a single journal. What was removed before it was read is told in
    the log. Raises what `keep` raises.
    """
    paths = [f"{broker}={journal}" for journal in journals] if broker else list(journals)
    corrupt = "skip" if skip_corrupt else "fail"
    options = parse_options({"paths": json.dumps(paths), "corrupt": corrupt})
    kept = keep(options, history)
    if kept.lost:
        print(f"lockkeeper: {kept.loss}", file=sys.stderr, flush=True)
    names = map(options.broker_of, options.directories)
    return [beside(history, folder_of(name)) for name in names]
