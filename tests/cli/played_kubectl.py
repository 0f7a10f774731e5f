"""A program that answers as kubectl would: python played_kubectl.py STATE ARGUMENTS…

STATE is a JSON file: the Broker, its pods, and the ports at which their admin endpoints are. When
the master's pod is deleted, the last standby without a fence takes over. An analysis that is made
has the status that STATE says, and its page's pod the folder `results`.
"""

import json
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROLE = "lockkeeper.dev/role"
FENCED = "lockkeeper.dev/fenced"


def fenced_in(state: dict[str, Any]) -> list[str]:
    annotations = state["broker"]["metadata"].get("annotations", {})
    return str(annotations.get(FENCED) or "").split(",")


def get(state: dict[str, Any], kind: str, *_: str) -> None:
    if kind == "pods":
        print(json.dumps({"items": state["pods"]}))
    elif kind.startswith("brokers"):
        print(json.dumps(state["broker"]))
    elif kind.startswith("journalanalyses") and "analysis_status" in state:
        print(json.dumps({**state["created"][-1], "status": state["analysis_status"]}))


def delete(state: dict[str, Any], _: str, name: str, *__: str) -> None:
    state["deleted"] = [*state.get("deleted", ()), name]
    state["pods"] = [pod for pod in state["pods"] if pod["metadata"]["name"] != name]
    able = [p for p in state["pods"] if p["metadata"]["name"] not in fenced_in(state)]
    if able:
        able[-1]["metadata"]["labels"][ROLE] = "master"


def patch(state: dict[str, Any], _: str, __: str, *options: str) -> None:
    change = json.loads(options[-1].removeprefix("--patch="))["metadata"]["annotations"]
    state["broker"]["metadata"].setdefault("annotations", {}).update(change)
    state["fences"] = [*state.get("fences", ()), change[FENCED]]


def create(state: dict[str, Any], *_: str) -> None:
    state["created"] = [*state.get("created", ()), json.load(sys.stdin)]


def forward(state: dict[str, Any], pod: str, _: str, port: str) -> None:
    found = state["ports"].get(pod.removeprefix("pod/"))
    if found is None:
        sys.exit("error: unable to forward port because pod is not running")
    print(f"Forwarding from 127.0.0.1:{found} -> {port.removeprefix(':')}", flush=True)
    time.sleep(600)


def execute(state: dict[str, Any], *_: str) -> None:
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
        archive.add(state["results"], ".")


def rollout(*_: object) -> None:
    """Say nothing: the pod is there."""


def main() -> None:
    path = Path(sys.argv[1])
    state = json.loads(path.read_text("utf-8"))
    words = [word for word in sys.argv[2:] if not word.startswith("--namespace")]
    orders: dict[str, Callable[..., None]] = {
        "create": create,
        "delete": delete,
        "exec": execute,
        "patch": patch,
        "port-forward": forward,
        "rollout": rollout,
    }
    order = {"get": get, **orders}[words[0]]
    order(state, *words[1:])
    if order in (create, delete, patch):
        other = path.with_suffix(".new")
        other.write_text(json.dumps(state), "utf-8")
        other.rename(path)


if __name__ == "__main__":
    main()
