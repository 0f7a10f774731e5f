"""Every command in docs/operating/ does what it says there, in the order of its document.

Of the README those that need a cluster; tests/cli tries the others.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from installation import Installation
from kube import Namespace, kubectl_command

PROJECT = Path(__file__).parents[1]
DOCUMENTS = [
    path
    for path in (PROJECT / "README.md", *sorted((PROJECT / "docs" / "operating").glob("*.md")))
    if "```console" in path.read_text("utf-8")
]
LOCAL = ("make ", ".venv/bin/")
SECONDS_MAX = 600.0


def conversations(document: Path) -> list[tuple[str, str]]:
    """Return a document's commands with what they print."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", document.read_text("utf-8"), re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            if not command.startswith(LOCAL):
                found.append((command, output))
    return found


def matches(expected: str, printed: str) -> bool:
    """Tell whether *printed* is what the document shows, whatever the width of columns."""
    pattern = re.sub(r"(\\?\s)+", r"\\s+", re.escape(expected.strip()))
    return re.fullmatch(pattern.replace("…", ".*?"), printed.strip(), re.S) is not None


class Shell:
    """Runs commands as a reader would, in a copy of what they need."""

    def __init__(self, folder: Path, namespace: Namespace, installation: Installation) -> None:
        self._folder, self._installation = folder, installation
        for name in ("docs/samples", "charts", "deploy"):
            shutil.copytree(PROJECT / name, folder / name)
        for path in (folder / "docs" / "samples").glob("*.yaml"):
            path.write_text(self.with_images(path.read_text("utf-8")), "utf-8")
        configuration = folder / "kubeconfig"
        shutil.copy(os.environ["KUBECONFIG"], configuration)
        tools = folder / "bin"
        tools.mkdir()
        (tools / "kubectl").write_text(f'#!/bin/sh\nexec {" ".join(kubectl_command())} "$@"\n')
        (tools / "kubectl").chmod(0o755)
        # The plugin of kubectl is installed beside the interpreter.
        commands = os.pathsep.join([str(tools), str(Path(sys.executable).parent)])
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(configuration),
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        }
        self.run(f"kubectl config set-context --current --namespace {namespace.name}")

    def with_images(self, text: str) -> str:
        """Return *text* with the images of this run."""
        for documented, image in (
            ("registry.example/lockkeeper-operator", self._installation.image),
            ("registry.example/lockkeeper", self._installation.broker_image),
        ):
            repository, _, tag = image.rpartition(":")
            text = text.replace(f"{documented}:0.1.0", image).replace(documented, repository)
            text = text.replace("tag=0.1.0", f"tag={tag}")
        return text

    def run(self, command: str) -> str:
        """Return what a command prints; it must succeed."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", self.with_images(command)],
            cwd=self._folder, env=self._environment, capture_output=True, text=True, check=False,
            timeout=SECONDS_MAX,
        )  # fmt: skip
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def shell(tmp_path: Path, namespace: Namespace, installation: Installation) -> Iterator[Shell]:
    """A shell whose kubectl uses the test's namespace; the operator is as before afterwards."""
    yield Shell(tmp_path, namespace, installation)
    installation.install()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_a_document_keeps_its_word(document: Path, shell: Shell) -> None:
    said = conversations(document)
    assert said
    for command, output in said:
        printed = shell.run(command)
        assert not output.strip() or matches(output, printed), f"$ {command}\n{printed}"
