"""Durable subscriptions: what waits for each, and what that keeps on disk."""

from lockkeeper_analytics.reports.messages import WAITING, verdicts
from lockkeeper_analytics.reports.report import Bars, Column, Report, Series, Tone, Unit

REPORT = Report(
    name="subscriptions",
    title="Durable subscriptions",
    question="Which durable subscribers do not come back, and what do they keep on disk?",
    columns=(
        Column("destination", "Topic", Unit.DESTINATION),
        Column("verdict", "Verdict", Unit.BADGE),
        Column("pending", "Waiting", Unit.COUNT, Tone.CAME),
        Column("bytes", "Size", Unit.BYTES),
        Column("files", "Files", Unit.COUNT),
        Column("oldest_pending_at", "Oldest", Unit.TIME),
        Column("last_ack_at", "Last acknowledgement", Unit.TIME),
        Column("seen_at", "Last seen", Unit.TIME),
        Column("absent_ms", "Away for", Unit.MILLISECONDS, Tone.WARM),
        Column("connected", "Connected", Unit.FLAG),
    ),
    plots=(
        Bars(
            ("destination", "subscription"),
            (Series("pending", "waiting", Tone.CAME),),
            "messages waiting",
        ),
    ),
    nothing="There are no durable subscriptions.",
    messages=WAITING,
    calm=verdicts("No durable subscriber stays away while messages wait."),
)
