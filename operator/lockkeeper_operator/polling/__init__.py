"""Requests to brokers over their admin endpoints, and their last answers.

Comes in: addresses of pods, the token, what a Destination is to be. Never here: the API server,
or a decision.
"""
