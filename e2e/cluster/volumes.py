#!/usr/bin/env python3
"""volumes.py STATE URL: serves StorageClass `standard`, a directory for each claim.

All nodes are one machine and share it, so that ReadWriteMany works, too. A claim that asks for
more has it at once: the size of a directory is a number only.
"""

import http.client
import json
import shutil
import ssl
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PERIOD_SECONDS = 0.5
ANSWER_SECONDS_MAX = 10.0
CLASS = "standard"
PROVIDED_BY, PROVIDER = "pv.kubernetes.io/provisioned-by", "lk.local/directory"
CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"

Manifest = dict[str, Any]


class Api:
    """One connection to the API server; kubectl would take half a core for this."""

    def __init__(self, state: Path, url: str) -> None:
        keys = state / "pki"
        context = ssl.create_default_context(cafile=str(keys / "ca.crt"))
        context.load_cert_chain(keys / "admin.crt", keys / "admin.key")
        place = urlsplit(url)
        self._connection = http.client.HTTPSConnection(
            place.hostname or "", place.port, timeout=ANSWER_SECONDS_MAX, context=context
        )

    def ask(self, verb: str, path: str, value: Manifest | None = None) -> Manifest:
        """Return the answer, empty if there is none: the next look tries again."""
        kind = "application/merge-patch+json" if verb == "PATCH" else "application/json"
        body = None if value is None else json.dumps(value)
        try:
            self._connection.request(verb, f"/api/v1/{path}", body, {"Content-Type": kind})
            answer = self._connection.getresponse()
            found: Manifest = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            self._connection.close()
            return {}
        return found if answer.status < http.client.MULTIPLE_CHOICES else {}

    def items(self, kind: str) -> list[Manifest]:
        """Return the objects of a kind that are of the class."""
        found = self.ask("GET", kind).get("items", [])
        return [item for item in found if item["spec"].get("storageClassName") == CLASS]


class Volumes:
    """The claims of the class, and the directories behind them."""

    def __init__(self, api: Api, folder: Path) -> None:
        self._api = api
        self._folder = folder

    def look(self) -> None:
        """Serve what there is to serve at present."""
        for claim in self._api.items(CLAIMS):
            phase = claim["status"].get("phase")
            if phase == "Pending" and not claim["spec"].get("volumeName"):
                self._provide(claim)
            elif phase == "Bound":
                self._grow(claim)
        for volume in self._api.items(VOLUMES):
            released = volume["status"].get("phase") == "Released"
            if released and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
                self._api.ask("DELETE", f"{VOLUMES}/{volume['metadata']['name']}")
                shutil.rmtree(volume["spec"]["hostPath"]["path"], ignore_errors=True)

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
            # Kubernetes leaves deletions to who provides such volumes.
            "metadata": {"name": name, "annotations": {PROVIDED_BY: PROVIDER}},
            "spec": {
                "capacity": spec["resources"]["requests"],
                "accessModes": spec["accessModes"],
                "storageClassName": CLASS,
                "persistentVolumeReclaimPolicy": "Delete",
                "hostPath": {"path": str(path)},
                "claimRef": {key: metadata[key] for key in ("namespace", "name", "uid")},
            },
        }
        self._api.ask("POST", VOLUMES, volume)

    def _grow(self, claim: Manifest) -> None:
        """Give a claim the size that it asks for since it was bound."""
        wanted = claim["spec"]["resources"]["requests"]["storage"]
        if claim["status"].get("capacity", {}).get("storage") == wanted:
            return
        capacity = {"capacity": {"storage": wanted}}
        self._api.ask("PATCH", f"{VOLUMES}/{claim['spec']['volumeName']}", {"spec": capacity})
        where = f"namespaces/{claim['metadata']['namespace']}/{CLAIMS}/{claim['metadata']['name']}"
        self._api.ask("PATCH", f"{where}/status", {"status": capacity})


def main(state: str, url: str) -> None:
    """Look again and again."""
    volumes = Volumes(Api(Path(state), url), Path(state) / "volumes")
    while True:
        volumes.look()
        time.sleep(PERIOD_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
