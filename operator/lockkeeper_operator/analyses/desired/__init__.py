"""Desired children of a JournalAnalysis: one pure builder for each kind of child.

Comes in: an `AnalysisSubject`, the analysis as it was read and where its journal is. Never here: a
request, a clock, randomness, or what is there at present.
"""
