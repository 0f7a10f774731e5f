"""The admin endpoint: health, state, and what a person or the operator may decide, over HTTP.

One file for each theme of questions. Comes in: requests, and what the process says of itself.
Never here: what a broker does; the themes call the core and turn its values into JSON.
"""

from lockkeeper.server.admin.endpoint import Admin

__all__ = ["Admin"]
