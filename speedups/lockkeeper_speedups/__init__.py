"""Compiled modules of the broker; `lockkeeper.speedups` loads them in place of their sources.

Never here: anything that is written by hand.
"""
