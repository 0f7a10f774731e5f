"""Steps about a Broker's pods: which start anew, hand over, or are fenced. Pure.

Comes in: pods as they were observed, and what they are to be. Never here: a request, a clock, or
a step about another child.
"""
