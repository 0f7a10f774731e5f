"""The Kubernetes operator: Broker and Destination resources become StatefulSets and their policies.

Comes in: resources as the API server holds them. Never here: an import of the broker, threads,
or a decision outside the pure plan.
"""
