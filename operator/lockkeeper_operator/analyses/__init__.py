"""JournalAnalyses: from a resource to Spark jobs and back to a status.

Comes in: resources and objects as they were read, and the time. Never here: a request, a clock of
its own, or what Spark itself does with a journal.
"""
