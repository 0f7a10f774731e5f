"""Progress of a driver: an annotation of its own pod, which the operator tells people of."""

import json
import ssl
import threading
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

ANNOTATION = "lockkeeper.dev/progress"
SECONDS = 5.0
TIMEOUT_SECONDS = 5.0
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
API_SERVER = "https://kubernetes.default.svc"
MERGE = "application/merge-patch+json"


class Tasks(NamedTuple):
    """Tasks of Spark's present stages, and how many of them are done."""

    tasks: int
    completed: int


class OwnPod(NamedTuple):
    """The pod that this process runs in, and the API server that has it."""

    name: str
    namespace: str
    server: str = API_SERVER
    account: Path = ACCOUNT

    def annotate(self, text: str) -> None:
        """Write the annotation; raises OSError where that is refused."""
        change = {"metadata": {"annotations": {ANNOTATION: text}}}
        token = (self.account / "token").read_text("utf-8")
        request = urllib.request.Request(
            f"{self.server}/api/v1/namespaces/{self.namespace}/pods/{self.name}",
            data=json.dumps(change).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": MERGE},
            method="PATCH",
        )
        context = None
        if self.server.startswith("https:"):
            context = ssl.create_default_context(cafile=str(self.account / "ca.crt"))
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS, context=context):
            pass


def own_pod(environment: Mapping[str, str]) -> OwnPod | None:
    """Return the pod that the operator's variables name, None outside of one."""
    name, namespace = environment.get("LOCKKEEPER_POD"), environment.get("LOCKKEEPER_NAMESPACE")
    return OwnPod(name, namespace) if name and namespace else None


class Progress:
    """Tells of each step, and of tasks now and then, as long as it is entered.

    A thread does, so that a slow API server holds up nothing; one that refuses is not asked again.
    """

    def __init__(self, pod: OwnPod | None, seconds: float = SECONDS) -> None:
        self._pod, self._seconds = pod, seconds
        self._step = "starting"
        self._broken: list[str] | None = None
        self._count: Callable[[], Tasks] = lambda: Tasks(0, 0)
        self._changed, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self.problem = ""
        """Why it cannot be told, empty while it can."""

    def __enter__(self) -> Self:
        if self._pod is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join(TIMEOUT_SECONDS + 1)

    def counted_by(self, count: Callable[[], Tasks]) -> None:
        """Ask *count* for tasks from now on."""
        self._count = count

    def tell(self, step: str) -> None:
        """Take note of a new step, and print it."""
        print(f"analyze: {step}", flush=True)
        self._step = step
        self._changed.set()

    def judge(self, broken: Sequence[str]) -> None:
        """Take note of the rules that are *broken*, and print them."""
        for each in broken:
            print(f"broken: {each}", flush=True)
        self._broken = list(broken)
        self._changed.set()

    def _run(self) -> None:
        told, is_last = "", False
        while not is_last:
            self._changed.wait(self._seconds)
            self._changed.clear()
            # What was said just before the end is told, too.
            is_last = self._stop.is_set()
            text = self._text()
            if text != told and self._pod is not None:
                try:
                    self._pod.annotate(text)
                except OSError as error:
                    self.problem = str(error)
                    print(f"progress cannot be told: {error}", flush=True)
                    return
                told = text

    def _text(self) -> str:
        counted = self._count()
        said: dict[str, Any] = {"step": self._step, **counted._asdict()}
        if self._broken is not None:
            said["broken"] = self._broken
        return json.dumps(said, separators=(",", ":"))
