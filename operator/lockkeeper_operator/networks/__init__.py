"""Networks of Brokers: from a resource and its Brokers to bridges, and to a status.

Comes in: resources as they were read, and what brokers say of their bridges. Never here: a child of
a Broker, or a change of one: what a network asks of a Broker, the Broker's own reconciler does.
Only `observing.py` and the reconciler ask anybody; all other files are pure.
"""
