"""Pattern of the week: the mean hour of each weekday."""

from lockkeeper_analytics.reports.report import Column, Heat, Report, Tone, Unit

REPORT = Report(
    name="pattern",
    title="Days and hours",
    question="On which days and at which hours is most going on?",
    columns=(
        Column("directory", "Journal", Unit.CODE),
        Column("weekday", "Day"),
        Column("hour", "Hour (UTC)"),
        Column("enqueued", "Came in an hour", Unit.DECIMAL, Tone.CAME),
        Column("dequeued", "Left in an hour", Unit.DECIMAL, Tone.LEFT),
        Column("hours", "Hours", Unit.COUNT),
    ),
    plots=(
        Heat(
            "hour",
            ("weekday",),
            "enqueued",
            "messages that came in an hour",
            "hour of the day (UTC)",
            "day",
        ),
    ),
    nothing="Nothing came and nothing left.",
)
