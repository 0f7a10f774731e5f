"""Columns that tell apart what reports count: destinations, and who waits there."""

DESTINATION = ("directory", "destination_kind", "destination")
SUBSCRIPTION = (*DESTINATION, "subscription")
"""Where messages wait: for a queue itself `subscription` is null."""
