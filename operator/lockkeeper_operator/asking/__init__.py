"""What brokers are asked and told over their admin endpoints, and what they answered last.

Comes in: addresses of pods, the token, what a Destination is to be. Never here: the API server,
or a decision.
"""
