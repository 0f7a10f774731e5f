"""Links to brokers and name servers: sockets, requests and their answers, routes, fail-over.

Comes in: requests. Never here: what becomes of their answers.
"""
