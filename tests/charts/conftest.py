"""What helm makes of the chart."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

CHART = Path(__file__).parents[2] / "charts" / "lockkeeper"
CACHED = Path.home() / ".cache" / "lk-cluster" / "helm"
SYSTEM = "lockkeeper-system"

Render = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="session")
def helm() -> str:
    """The helm of this machine, or that of `e2e/cluster/helm.sh`."""
    found = shutil.which("helm") or (str(CACHED) if os.access(CACHED, os.X_OK) else None)
    if found is None:
        pytest.skip("needs helm: e2e/cluster/helm.sh builds one")
    return found


@pytest.fixture(scope="session")
def render(helm: str) -> Render:
    """What makes objects of the chart, with settings as --set takes them."""

    def made(*settings: str, name: str = "lockkeeper") -> list[dict[str, Any]]:
        chosen = [part for setting in settings for part in ("--set", setting)]
        command = [helm, "template", name, str(CHART), "--namespace", SYSTEM, *chosen]
        done = subprocess.run(
            [*command, "--kube-version", "1.34.4"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ValueError(done.stderr)
        return [each for each in yaml.safe_load_all(done.stdout) if each]

    return made
