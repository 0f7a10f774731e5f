"""The reports: one file per question asked of a journal, each a function Journal → DataFrame.

Comes in: the data frames of `facts/`. Never here: HTML, files, a session.
"""

from collections.abc import Callable

from pyspark.sql import DataFrame

from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reports.backlog import backlog
from lockkeeper_analytics.reports.dead_letters import dead_letters
from lockkeeper_analytics.reports.inventory import inventory
from lockkeeper_analytics.reports.latency import latency
from lockkeeper_analytics.reports.latency_over_time import latency_over_time
from lockkeeper_analytics.reports.rates import rates
from lockkeeper_analytics.reports.redeliveries import redeliveries
from lockkeeper_analytics.reports.takeovers import takeovers
from lockkeeper_analytics.reports.totals import totals

REPORTS: dict[str, Callable[[Journal], DataFrame]] = {
    "inventory": inventory,
    "totals": totals,
    "rates": rates,
    "latency": latency,
    "latency_over_time": latency_over_time,
    "backlog": backlog,
    "dead_letters": dead_letters,
    "redeliveries": redeliveries,
    "takeovers": takeovers,
}
"""Every report by the name of its Parquet file."""
