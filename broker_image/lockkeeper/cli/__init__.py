"""The command line: argument parsing and presentation.

Comes in: what a person typed. Never here: behaviour that another room could not call.

Rooms that take long to import (client, server, the API models) are imported by the commands that
need them when they run, so that `--help` and the small commands answer at once.
"""
