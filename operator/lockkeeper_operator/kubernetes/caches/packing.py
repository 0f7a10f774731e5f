"""Objects as small as they can be kept: without what nobody here reads, compressed."""

import json
import zlib
from typing import Any

from lockkeeper_operator.kubernetes.manifests import Manifest

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_LEVEL = 3

_KEPT_OF_STATUS = {
    "Broker": None,
    "Destination": None,
    "BrokerNetwork": None,
    "JournalAnalysis": None,
    "JournalBackup": None,
    "StatefulSet": ("observedGeneration",),
    "PersistentVolumeClaim": ("phase", "capacity"),
    "Pod": ("phase", "reason", "podIP"),
}
"""What is kept of a status: None for all of it; of kinds that are not here, nothing is."""
_POD_CONDITIONS = ("Ready", "PodScheduled", "DisruptionTarget")


def trimmed(manifest: Manifest) -> Manifest:
    """Return *manifest* without what no plan and no status is made from."""
    metadata = {**manifest["metadata"]}
    metadata.pop("managedFields", None)
    if LAST_APPLIED in metadata.get("annotations", {}):
        notes = {**metadata["annotations"]}
        del notes[LAST_APPLIED]
        metadata["annotations"] = notes
    kind = manifest.get("kind", "")
    kept = {**manifest, "metadata": metadata}
    if kind == "Pod":
        node = kept.pop("spec", {}).get("nodeName")
        if node is not None:
            kept["spec"] = {"nodeName": node}
        kept["status"] = _status_of_pod(manifest.get("status", {}))
    elif kind == "Lease":
        kept.pop("spec", None)
    else:
        names = _KEPT_OF_STATUS.get(kind, ())
        status = kept.pop("status", {})
        if names is None:
            kept["status"] = status
        elif names:
            kept["status"] = {name: status[name] for name in names if name in status}
    return kept


def _status_of_pod(status: Manifest) -> Manifest:
    kept: Manifest = {name: status[name] for name in ("phase", "reason", "podIP") if name in status}
    kept["conditions"] = [
        {"type": each["type"], "status": each["status"]}
        for each in status.get("conditions", ())
        if each["type"] in _POD_CONDITIONS
    ]
    for part in ("initContainerStatuses", "containerStatuses"):
        waiting = [
            {"state": {"waiting": {"reason": each["state"]["waiting"].get("reason", "")}}}
            for each in status.get(part, ())
            if "waiting" in each.get("state", {})
        ]
        if waiting:
            kept[part] = waiting
    return kept


class Packing:
    """Packs objects of one kind.

    Most of an object is in all of its kind: what is as in the first of them is not kept again. A
    Destination takes a tenth of what it takes alone.
    """

    def __init__(self) -> None:
        self._sample = b""

    def packed(self, manifest: Manifest) -> bytes:
        """Return *manifest* as bytes; equal ones give equal bytes, versions apart."""
        metadata = {**manifest["metadata"]}
        metadata.pop("resourceVersion", None)
        written = {**manifest, "metadata": metadata}
        text = json.dumps(written, separators=(",", ":"), sort_keys=True).encode()
        self._sample = self._sample or text
        packer = zlib.compressobj(_LEVEL, zdict=self._sample)
        return packer.compress(text) + packer.flush()

    def unpacked(self, data: bytes) -> Manifest:
        """Return what was packed here, without its version."""
        found: Any = json.loads(zlib.decompressobj(zdict=self._sample).decompress(data))
        assert isinstance(found, dict)
        return found
