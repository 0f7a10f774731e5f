"""The reports: one question asked of a journal in two files, NAME.py and NAME.sql.

Comes in: the data frames of `facts/`. Never here: HTML, files, a session.
"""

from lockkeeper_analytics.reports import (
    backlog,
    backlog_over_time,
    dead_letters,
    duplicates,
    inventory,
    latency,
    latency_over_time,
    poison,
    producers,
    rates,
    redeliveries,
    sizes,
    skew,
    takeovers,
    totals,
    transactions,
)
from lockkeeper_analytics.reports.report import Report

GROUPS: dict[str, tuple[Report, ...]] = {
    "Traffic": (
        rates.REPORT,
        totals.REPORT,
        producers.REPORT,
        sizes.REPORT,
        skew.REPORT,
    ),
    "Latency": (latency.REPORT, latency_over_time.REPORT),
    "Waiting": (
        backlog.REPORT,
        backlog_over_time.REPORT,
        transactions.REPORT,
    ),
    "Trouble": (
        dead_letters.REPORT,
        redeliveries.REPORT,
        poison.REPORT,
        duplicates.REPORT,
    ),
    "Brokers and journal": (
        takeovers.REPORT,
        inventory.REPORT,
    ),
}
"""The reports in the page's order, under the headings of its table of contents."""

REPORTS: dict[str, Report] = {
    report.name: report for reports in GROUPS.values() for report in reports
}
"""Every report by its name, which is that of its files."""
