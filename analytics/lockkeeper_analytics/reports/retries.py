"""Retries and dead letters of consumer groups: what their members gave back."""

from lockkeeper_analytics.reports.report import Bars, Column, Report, Series, Tone, Unit

REPORT = Report(
    name="retries",
    title="Retries and dead letters of groups",
    question="Which consumer groups give messages back, and which of these died?",
    columns=(
        Column("consumer_group", "Group", Unit.CODE),
        Column("retries", "Came again", Unit.COUNT, Tone.WARM),
        Column("highest", "Times at most", Unit.COUNT),
        Column("waiting", "Of these to consume", Unit.COUNT),
        Column("dead_letters", "Dead letters", Unit.COUNT, Tone.BAD),
        Column("kept", "Of these kept", Unit.COUNT),
        Column("first_at", "First", Unit.TIME),
        Column("last_at", "Last", Unit.TIME),
    ),
    plots=(
        Bars(
            ("directory", "consumer_group"),
            (
                Series("retries", "came again", Tone.WARM),
                Series("dead_letters", "dead letters", Tone.BAD),
            ),
            "messages",
        ),
    ),
    nothing="No consumer group gave a message back.",
    note="Retries come again in %RETRY%GROUP; what was given back too often is in %DLQ%GROUP.",
    calm=lambda rows: (
        "" if any(row["dead_letters"] for row in rows) else "What was given back did not die."
    ),
)
