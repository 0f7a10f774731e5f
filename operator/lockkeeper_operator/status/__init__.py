"""Status of a resource: one pure file for each condition.

Comes in: what was observed and planned. Never here: a request, a clock, or a phase: conditions
say what is so, and why.

Every condition is `condition(facts) -> Verdict`; `broker_status.py` and `destination_status.py`
put them together, and give nothing when the status that is there says the same already.
"""
