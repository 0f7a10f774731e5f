"""Kubernetes, as every kind of resource needs it: requests, caches, children, conditions, events.

Comes in: manifests, as the API server has them. Never here: what a Broker, a Destination, an
analysis or a backup is to be.
"""
