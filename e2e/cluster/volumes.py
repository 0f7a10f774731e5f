#!/usr/bin/env python3
"""volumes.py KUBE STATE: serves StorageClass `standard`, a directory for each claim.

All nodes are one machine and share it, so that ReadWriteMany works, too. A claim that asks for
more has it at once: the size of a directory is a number only.
"""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PERIOD_SECONDS = 0.7
CLASS = "standard"

Manifest = dict[str, Any]


class Volumes:
    """The claims of the class, and the directories behind them."""

    def __init__(self, kube: str, state: Path) -> None:
        self._kubectl = [kube, "kubectl", f"--kubeconfig={state}/pki/admin.kubeconfig"]
        self._folder = state / "volumes"

    def look(self) -> None:
        """Serve what there is to serve at present."""
        for claim in self._those_of_the_class("pvc"):
            phase = claim["status"].get("phase")
            if phase == "Pending" and not claim["spec"].get("volumeName"):
                self._provide(claim)
            elif phase == "Bound":
                self._grow(claim)
        for volume in self._those_of_the_class("pv"):
            if volume["status"].get("phase") == "Released":
                self._run("delete", "pv", volume["metadata"]["name"])
                shutil.rmtree(volume["spec"]["hostPath"]["path"], ignore_errors=True)

    def _those_of_the_class(self, kind: str) -> list[Manifest]:
        answer = self._run("get", kind, "-A", "-o", "json")
        items: list[Manifest] = json.loads(answer)["items"] if answer else []
        return [item for item in items if item["spec"].get("storageClassName") == CLASS]

    def _provide(self, claim: Manifest) -> None:
        """Make the volume for a claim."""
        metadata, spec = claim["metadata"], claim["spec"]
        name = f"pvc-{metadata['uid']}"
        path = self._folder / name
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o777)
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": spec["resources"]["requests"],
                "accessModes": spec["accessModes"],
                "storageClassName": CLASS,
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": {"path": str(path)},
                "claimRef": {key: metadata[key] for key in ("namespace", "name", "uid")},
            },
        }
        self._run("create", "-f", "-", given=json.dumps(volume))

    def _grow(self, claim: Manifest) -> None:
        """Give a claim the size that it asks for since it was bound."""
        wanted = claim["spec"]["resources"]["requests"]["storage"]
        if claim["status"].get("capacity", {}).get("storage") == wanted:
            return
        capacity = {"capacity": {"storage": wanted}}
        volume = claim["spec"]["volumeName"]
        self._run("patch", "pv", volume, "-p", json.dumps({"spec": capacity}))
        where = ("-n", claim["metadata"]["namespace"], claim["metadata"]["name"])
        status = json.dumps({"status": capacity})
        self._run("patch", "pvc", *where, "--subresource=status", "-p", status)

    def _run(self, *arguments: str, given: str | None = None) -> str:
        """Return what kubectl prints, empty if it fails: the next look tries again."""
        done = subprocess.run(
            [*self._kubectl, *arguments], input=given, capture_output=True, text=True, check=False
        )
        return done.stdout if done.returncode == 0 else ""


def main(kube: str, state: str) -> None:
    """Look again and again."""
    volumes = Volumes(kube, Path(state))
    while True:
        volumes.look()
        time.sleep(PERIOD_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
