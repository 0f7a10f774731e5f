"""The Kubernetes operator: resources become brokers, destinations, analyses and backups.

Comes in: resources as the API server holds them. Never here: an import of the broker, threads,
or a decision outside the pure plan.
"""
