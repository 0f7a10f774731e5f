"""Errors in bytes that claim to be a message."""


class MalformedMessageError(ValueError):
    """The bytes are not what openwire.md says; the text names the field and the offset."""
