"""Status of an analysis: one pure file for each condition, all of the latest run.

Comes in: what was observed and planned, and the time. Never here: a request, or a clock of its own.

Every condition is `condition(facts) -> Verdict`; `status.py` puts them together, and gives nothing
when the status that is there says the same already.
"""
