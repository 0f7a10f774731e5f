"""A small HTTP server that keeps objects as the API server does: pods to patch, Leases to hold.

Every object has a resourceVersion, and a PUT with an older one is refused with 409. `cut()` makes
it read requests and never answer, as a network does that drops everything.
"""

import copy
import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

POD_PATH = "/api/v1/namespaces/{}/pods/{}"
LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}"


class ApiObjects:
    """The server, and what is in it by path."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str, str]] = []
        self.token = ""
        self.lock = threading.RLock()
        self.connected = threading.Event()
        self.connected.set()
        handler = type("Handler", (_Handler,), {"api": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._version = 0

    def put(self, path: str, value: dict[str, Any]) -> dict[str, Any]:
        """Store an object under a new version, with a uid if it has none."""
        with self.lock:
            self._version += 1
            metadata = value.setdefault("metadata", {})
            metadata.setdefault("uid", str(uuid.uuid4()))
            metadata["resourceVersion"] = str(self._version)
            self.objects[path] = value
            return value

    def add_pod(self, namespace: str, name: str, uid: str) -> str:
        path = POD_PATH.format(namespace, name)
        self.put(path, {"kind": "Pod", "metadata": {"name": name, "uid": uid, "labels": {}}})
        return path

    def add_lease(self, namespace: str, name: str) -> str:
        path = LEASE_PATH.format(namespace, name)
        self.put(path, {"kind": "Lease", "metadata": {"name": name}})
        return path

    def get(self, path: str) -> dict[str, Any]:
        with self.lock:
            return copy.deepcopy(self.objects[path])

    def labels(self, path: str) -> dict[str, str]:
        labels: dict[str, str] = self.get(path)["metadata"]["labels"]
        return labels

    def cut(self) -> None:
        """Answer nobody any more."""
        self.connected.clear()

    def mend(self) -> None:
        """Answer again, those who still wait, too."""
        self.connected.set()

    def close(self) -> None:
        self.mend()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that have hung up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: ClassVar[ApiObjects]

    def do_GET(self) -> None:
        self._answer(lambda path, _: (200, self.api.objects[path]))

    def do_PUT(self) -> None:
        self._answer(self._replace)

    def do_PATCH(self) -> None:
        self._answer(self._patch)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self, act: Any) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.api.connected.wait()
        path = urlsplit(self.path).path
        shown = self.headers.get("Authorization", "")
        with self.api.lock:
            self.api.requests.append((self.command, path, shown))
            if self.api.token and shown != f"Bearer {self.api.token}":
                code, found = 401, {"message": "Unauthorized"}
            elif path not in self.api.objects:
                code, found = 404, {"message": f"{path} not found"}
            else:
                code, found = act(path, json.loads(body or b"null"))
            text = json.dumps(found).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _replace(self, path: str, value: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        found = self.api.objects[path]["metadata"]
        if value["metadata"].get("resourceVersion") != found["resourceVersion"]:
            return 409, {"message": "the object has been modified"}
        return 200, self.api.put(path, value)

    def _patch(self, path: str, change: Any) -> tuple[int, dict[str, Any]]:
        value = self.api.objects[path]
        if isinstance(change, list):
            return self._patch_labels(path, value, change)
        if change["metadata"].get("uid", value["metadata"]["uid"]) != value["metadata"]["uid"]:
            return 409, {"message": "Precondition failed: UID in precondition"}
        return 200, self.api.put(path, _merged(value, change))

    def _patch_labels(
        self, path: str, value: dict[str, Any], change: list[dict[str, str]]
    ) -> tuple[int, dict[str, Any]]:
        """Apply a JSON patch (RFC 6902) of tests and replacements of labels."""
        labels = dict(value["metadata"]["labels"])
        for step in change:
            name = step["path"].removeprefix("/metadata/labels/").replace("~1", "/")
            if step["op"] == "test" and labels.get(name) != step["value"]:
                return 422, {"message": "the server rejected our request due to an error"}
            if step["op"] == "replace":
                labels[name] = step["value"]
        value["metadata"]["labels"] = labels
        return 200, self.api.put(path, value)


def _merged(value: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Return *value* with a merge patch (RFC 7396) applied."""
    result = dict(value)
    for name, wanted in change.items():
        if wanted is None:
            result.pop(name, None)
        elif isinstance(wanted, dict):
            result[name] = _merged(result.get(name, {}), wanted)
        else:
            result[name] = wanted
    return result
