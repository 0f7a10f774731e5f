"""Status of a network: one pure file for each condition, as kstatus reads them.

Comes in: what was observed. Never here: a request, or a clock.

A network is connected, on its way, or waits for a person: `standing.py` says which, and every
condition is `condition(standing) -> Verdict`. `status.py` puts them together, and gives nothing
when the status that is there says the same already.
"""
