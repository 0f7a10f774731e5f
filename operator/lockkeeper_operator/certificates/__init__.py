"""Certificates: an authority of the operator's own, and those that it vouches for.

Comes in: names, and the time. Never here: who presents a certificate, and where.
"""
