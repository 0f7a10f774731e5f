"""Bearer token of the admin endpoint, read from a file, where there is one."""

import hmac
from pathlib import Path

from aiohttp import web

from lockkeeper.server.admin.answers import Handler, refusal

TOKEN_FILE = "admin-token"
GUARDED_PATH = "/api/"
_SCHEME = "bearer"


class TokenCheck:
    """Compares the token of requests with that of the file, which may change at any time.

    Without a directory of secrets, or a file in it, everybody may ask; but once there was a
    token, a file that is gone lets nobody in.
    """

    def __init__(self, secrets: Path | None) -> None:
        self._file = None if secrets is None else secrets / TOKEN_FILE
        self._is_needed = False

    @web.middleware
    async def check_request(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let a request through, or answer 401."""
        if request.path.startswith(GUARDED_PATH) and not self._permits(request):
            answer = refusal(401, "the admin token is needed: Authorization: Bearer TOKEN")
            answer.headers["WWW-Authenticate"] = "Bearer"
            return answer
        return await handler(request)

    def _permits(self, request: web.Request) -> bool:
        token = self._read()
        if token is None:
            return True
        scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
        # Bytes of a header that are no UTF-8 come as lone surrogates.
        same = hmac.compare_digest(shown.strip().encode(errors="surrogateescape"), token)
        return bool(token) and scheme.lower() == _SCHEME and same

    def _read(self) -> bytes | None:
        """Return the token, None when none is needed; empty ones permit nobody."""
        if self._file is None:
            return None
        try:
            token = self._file.read_bytes().strip()
        except FileNotFoundError:
            return b"" if self._is_needed else None
        except OSError:
            token = b""
        self._is_needed = True
        return token
