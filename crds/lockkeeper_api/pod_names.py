"""What the operator, brokers in pods and `kubectl lockkeeper` must call the same."""

ROLE_LABEL = "lockkeeper.dev/role"
"""On pods: `master` or `standby`; each broker writes its own."""
FENCED_ANNOTATION = "lockkeeper.dev/fenced"
"""On a Broker: names of pods, commas between, that neither serve nor take over."""
FENCED_FILE = "fenced"
"""Beside the configuration, if there are any: names of the fenced pods, one a line."""
