"""Backups: what there is of a JournalBackup to the next steps, and to its status. Pure.

In come manifests, as they were read; out go steps and statuses. Never here: the API server, and
the time, which comes in.
"""
