#!/usr/bin/env python3
"""image.py FOLDER NAME OUT [COMMAND…]: pack a folder as an image of one layer.

OUT is an archive that `ctr images import` takes. Needs nothing but Python.
"""

import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path


def main(folder: str, name: str, out: str, *command: str) -> None:
    """Write the archive."""
    layer = layer_of(Path(folder))
    config = config_of(layer, command)
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]
    members = {
        config_name: config,
        "layer.tar": layer,
        "manifest.json": json.dumps(manifest).encode(),
    }
    with tarfile.open(out, "w") as archive:
        for member, data in members.items():
            info = tarfile.TarInfo(member)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def layer_of(folder: Path) -> bytes:
    """Return the folder as a tar archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        layer.add(folder, arcname=".")
    return buffer.getvalue()


def config_of(layer: bytes, command: tuple[str, ...]) -> bytes:
    """Return the image's configuration as JSON."""
    digest = hashlib.sha256(layer).hexdigest()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": list(command)},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    return json.dumps(config).encode()


if __name__ == "__main__":
    main(*sys.argv[1:])
