"""Consumer groups: how far each is in each partition, and those that are slow or stuck."""

from lockkeeper_analytics.reports.messages import verdicts
from lockkeeper_analytics.reports.report import Bars, Column, Report, Series, Tone, Unit

REPORT = Report(
    name="groups",
    title="Consumer groups",
    question="How far is each consumer group behind the streams that it reads?",
    columns=(
        Column("consumer_group", "Group", Unit.CODE),
        Column("stream", "Stream", Unit.DESTINATION),
        Column("partition", "Partition", Unit.COUNT),
        Column("verdict", "Verdict", Unit.BADGE),
        Column("waiting", "To consume", Unit.COUNT, Tone.WARM),
        Column("lag_ms", "Behind by", Unit.MILLISECONDS),
        Column("next_offset", "Offset", Unit.COUNT),
        Column("end_offset", "End", Unit.COUNT),
        Column("oldest_at", "Oldest", Unit.TIME),
        Column("progressed_at", "Last progress", Unit.TIME),
        Column("locked_by", "Held by", Unit.CODE),
    ),
    plots=(
        Bars(
            ("directory", "consumer_group", "stream", "partition"),
            (Series("waiting", "to consume", Tone.WARM),),
            "messages to consume (lag)",
        ),
    ),
    nothing="There are no consumer groups.",
    note="Brokers write offsets every five seconds: a group may be further than that tells.",
    calm=verdicts("No group stays behind."),
)
