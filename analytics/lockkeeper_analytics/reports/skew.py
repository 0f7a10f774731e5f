"""Is the load spread? Messages by their group and by their priority."""

from lockkeeper_analytics.reports.messages import OF_DESTINATION
from lockkeeper_analytics.reports.report import Bars, Column, Report, Series, Tone, Unit

REPORT = Report(
    name="skew",
    title="Groups and priorities",
    question="Does one group or priority have most of the messages, and do others wait for it?",
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("what", "By"),
        Column("value", "Value", Unit.CODE),
        Column("messages", "Messages", Unit.COUNT, Tone.CAME),
        Column("share", "Share", Unit.SHARE),
        Column("of", "Values", Unit.COUNT),
        Column("p50_ms", "Half within", Unit.MILLISECONDS),
        Column("p99_ms", "99 %", Unit.MILLISECONDS),
        Column("hot", "Too much for one", Unit.FLAG),
    ),
    plots=(
        Bars(
            ("destination", "what", "value"),
            (Series("messages", "messages", Tone.CAME),),
            "messages",
        ),
    ),
    nothing="Messages have no groups and one priority.",
    calm=lambda rows: "" if any(row["hot"] for row in rows) else "No group is too much for one.",
    messages=f"{OF_DESTINATION} AND CASE {{what}} WHEN 'group' THEN group_id "
    "ELSE CAST(priority AS VARCHAR) END = {value}",
)
