"""Producers: what each connection stored at each destination, and how fast."""

from lockkeeper_analytics.reports.messages import OF_DESTINATION
from lockkeeper_analytics.reports.report import Bars, Column, Report, Series, Tone, Unit

REPORT = Report(
    name="producers",
    title="Who sends",
    question="Which connections sent how much, where to, and how fast?",
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("producer", "Connection", Unit.CODE),
        Column("client_id", "Client", Unit.CODE),
        Column("user_name", "User"),
        Column("address", "Address"),
        Column("messages", "Messages", Unit.COUNT, Tone.CAME),
        Column("share", "Of all there", Unit.SHARE),
        Column("bytes", "Size", Unit.BYTES),
        Column("per_second", "A second", Unit.DECIMAL),
        Column("transacted", "In transactions", Unit.COUNT),
        Column("first_at", "First", Unit.TIME),
        Column("last_at", "Last", Unit.TIME),
    ),
    plots=(
        Bars(
            ("destination", "producer"),
            (Series("messages", "messages", Tone.CAME),),
            "messages sent",
        ),
    ),
    nothing="Nothing was sent that the journal holds.",
    messages=f"{OF_DESTINATION} AND starts_with(producer_id, {{producer}} || ':')",
)
