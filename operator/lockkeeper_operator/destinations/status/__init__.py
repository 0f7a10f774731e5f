"""Status of a Destination: one pure file for each condition.

Comes in: what was observed. Never here: a request, a clock, or a phase: conditions say what is so,
and why.

Every condition is `condition(facts) -> Verdict`; `status.py` puts them together, and gives nothing
when the status that is there says the same already.
"""
