"""The parts of a JournalAnalysis: what is read, when, by how many, and where results go.

Comes in: the models' rules and quantities. Never here: how Spark or a cluster carries it out.
"""
