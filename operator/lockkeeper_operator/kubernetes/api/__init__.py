"""The API server: requests over the official client, dicts in and out.

Comes in: manifests, names, uids. Never here: what a Broker is, a decision, or a retry of what
may have been done: who asks knows when to ask again.
"""
