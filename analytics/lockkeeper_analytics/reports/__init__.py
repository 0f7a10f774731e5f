"""The reports: one question asked of a journal in two files, NAME.py and NAME.sql.

Comes in: tables, and the views of `facts/`. Never here: HTML, files, a session.
"""

from lockkeeper_analytics.reports import (
    anomalies,
    backlog,
    backlog_over_time,
    bodies,
    brokers,
    consumers,
    dead_letters,
    duplicates,
    garbage,
    groups,
    inventory,
    lag_over_time,
    latency,
    latency_over_time,
    network,
    partitions,
    pattern,
    poison,
    producers,
    rates,
    redeliveries,
    retries,
    sizes,
    skew,
    subscriptions,
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
        pattern.REPORT,
        anomalies.REPORT,
        bodies.REPORT,
    ),
    "Latency": (latency.REPORT, latency_over_time.REPORT, consumers.REPORT),
    "Waiting": (
        backlog.REPORT,
        backlog_over_time.REPORT,
        subscriptions.REPORT,
        transactions.REPORT,
    ),
    "Streams": (
        groups.REPORT,
        lag_over_time.REPORT,
        retries.REPORT,
        partitions.REPORT,
    ),
    "Trouble": (
        dead_letters.REPORT,
        redeliveries.REPORT,
        poison.REPORT,
        duplicates.REPORT,
    ),
    "Brokers and journal": (
        brokers.REPORT,
        network.REPORT,
        takeovers.REPORT,
        garbage.REPORT,
        inventory.REPORT,
    ),
}
"""The reports in the page's order, under the headings of its table of contents."""

REPORTS: dict[str, Report] = {
    report.name: report for reports in GROUPS.values() for report in reports
}
"""Every report by its name, which is that of its files."""

USUAL = tuple(name for name, report in REPORTS.items() if not report.is_optional)
"""The names of those that are made unless something else is asked for."""
