"""Signatures of requests: who sent one, and that nobody changed it (RocketMQ's ACL 1.0)."""

import hmac
from base64 import b64encode
from hashlib import sha1

from lockkeeper.protocols.rocketmq.codec import Command

ACCESS_KEY, SIGNATURE, TOKEN = "AccessKey", "Signature", "SecurityToken"
CREDENTIALS = frozenset((ACCESS_KEY, SIGNATURE, TOKEN))
"""Fields that are nobody's business but the broker's."""


def signature_of(request: Command, secret: str) -> str:
    """Return the signature of a request: all its fields by name, and its body, by the secret."""
    ordered = sorted(name for name in request.fields if name != SIGNATURE)
    signed = "".join(request.fields[name] for name in ordered)
    content = signed.encode("utf-8", "replace") + request.body
    return b64encode(hmac.digest(secret.encode(), content, sha1)).decode()


def is_signed(request: Command, secret: str) -> bool:
    """Tell whether a request bears the signature that this secret makes."""
    told = request.fields.get(SIGNATURE, "").encode("utf-8", "replace")
    return hmac.compare_digest(told, signature_of(request, secret).encode())
