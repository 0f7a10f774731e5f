"""The broker in a pod of a Kubernetes cluster: who it is, and what it writes to the API server.

Comes in: the pod's environment and service account. Never here: anything that a process outside
a cluster needs.
"""
