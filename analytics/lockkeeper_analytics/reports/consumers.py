"""Consumers: what each took and how late, and those that are slow or went silent."""

from lockkeeper_analytics.reports.messages import verdicts
from lockkeeper_analytics.reports.report import Bars, Column, Report, Series, Tone, Unit

REPORT = Report(
    name="consumers",
    title="Who consumes",
    question="Which consumers are slow or stuck while messages wait?",
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("consumer", "Consumer", Unit.CODE),
        Column("verdict", "Verdict", Unit.BADGE),
        Column("client_id", "Client", Unit.CODE),
        Column("address", "Address"),
        Column("waiting", "Waiting there", Unit.COUNT),
        Column("silent_ms", "Silent for", Unit.MILLISECONDS, Tone.WARM),
        Column("acknowledged", "Acknowledged", Unit.COUNT, Tone.LEFT),
        Column("delivered", "Delivered", Unit.COUNT),
        Column("p50_ms", "Half within", Unit.MILLISECONDS),
        Column("p99_ms", "99 %", Unit.MILLISECONDS),
        Column("max_ms", "Longest", Unit.MILLISECONDS),
        Column("slow_events", "Found slow", Unit.COUNT),
        Column("held", "Held", Unit.COUNT),
        Column("last_ack_at", "Last acknowledgement", Unit.TIME),
        Column("opened_at", "Opened", Unit.TIME),
        Column("closed_at", "Closed", Unit.TIME),
    ),
    plots=(
        Bars(
            ("destination", "consumer"),
            (Series("silent_ms", "silent", Tone.WARM),),
            "time without a sign of life",
            Unit.MILLISECONDS,
        ),
    ),
    nothing="The journal names no consumer.",
    calm=verdicts("No consumer is slow or stuck."),
)
