"""Builders of a backup's children: a JournalBackup to manifests, one child a file. Pure.

Never here: what there is in a cluster, and whether anything is to be done.
"""
