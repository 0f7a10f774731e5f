"""The operator's process: what wakes it, what it does then, who leads.

Comes in: changes from the caches, answers of brokers, time. Never here: what a Broker or a
Destination is to be: the pure rooms say that, and what is done here follows their steps.
"""
