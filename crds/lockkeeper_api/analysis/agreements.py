"""Rules that an analysis holds its reports against."""

from typing import Annotated

from pydantic import Field

RULES_MAX = 32
_DURATION = r"([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+"
_NUMBER = r"[0-9]+(\.[0-9]+)?"
_MEASURE = (
    rf"((p50|p99|lag) *>=? *{_DURATION}|backlog *>=? *{_NUMBER}"
    rf"|dead-letter-rate *>=? *{_NUMBER}(%|/[smhd]))"
)
Rule = Annotated[
    str, Field(max_length=512, pattern=rf"^(\S.*: +)?{_MEASURE}( +for +{_DURATION})?$")
]
"""A rule, such as `ORDERS.>: p99 > 5s for 10m`."""
