"""Secrets of a pod's broker, and the token that its admin endpoint wants."""

from pathlib import Path

SECRETS_DIRECTORY = Path("/etc/lockkeeper-secrets")
TOKEN_PATH = SECRETS_DIRECTORY / "admin-token"

_given: list[str] = []


def remember_token(token: str | None) -> str | None:
    """Keep the token of the command line for every question that this command asks."""
    _given[:] = [token] if token else []
    return token


def authorization() -> dict[str, str]:
    """Return the header that proves who asks, or none where there is no token."""
    token = _given[0] if _given else _token_of_the_pod()
    return {"Authorization": f"Bearer {token}"} if token else {}


def _token_of_the_pod() -> str:
    try:
        return TOKEN_PATH.read_text("utf-8").strip()
    except OSError:
        return ""
