"""kubectl as the way to the cluster: questions, orders, and why they failed."""

import json
import os
import shutil
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lockkeeper.cli.errors import MISUSED, CommandError

PROGRAM_VARIABLE = "KUBECTL"
"""Names the program, if it is not the `kubectl` that the shell would find."""
ANSWER_SECONDS_MAX = 60.0
# What kubectl calls the options that say which cluster is meant.
OPTIONS = ("--namespace", "--context", "--kubeconfig", "--cluster", "--as")
SHORT = {"-n": "--namespace"}

Manifest: TypeAlias = dict[str, Any]


class KubectlError(CommandError):
    """kubectl refused, or cannot be run; the text is what it said."""


@dataclass(frozen=True)
class Kubectl:
    """One cluster and namespace, as kubectl's *options* say."""

    options: tuple[str, ...] = ()

    def command(self, *arguments: str) -> list[str]:
        """Return the command line. Raises KubectlError when there is no kubectl."""
        program = os.environ.get(PROGRAM_VARIABLE, "kubectl")
        words = program.split()
        if shutil.which(words[0]) is None:
            raise KubectlError(f"{words[0]} is not installed, or not on the PATH", MISUSED)
        return [*words, *self.options, *arguments]

    def in_namespace(self, name: str) -> "Kubectl":
        """Return the same cluster's other namespace."""
        others = tuple(each for each in self.options if not each.startswith("--namespace="))
        return Kubectl((*others, f"--namespace={name}"))

    def run(self, *arguments: str, text: str | None = None) -> str:
        """Return what kubectl prints, given *text* to read. Raises KubectlError."""
        return self.in_time(ANSWER_SECONDS_MAX, *arguments, text=text)

    def in_time(self, seconds_max: float, *arguments: str, text: str | None = None) -> str:
        """Do the same for questions that may take other times to answer."""
        try:
            done = subprocess.run(
                self.command(*arguments), input=text, capture_output=True, text=True,
                timeout=seconds_max, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise KubectlError(f"the cluster has not answered for {seconds_max:.0f} s") from error
        if done.returncode:
            raise KubectlError(_reason(done.stderr))
        return done.stdout

    def get(self, kind: str, name: str) -> Manifest:
        """Return one object. Raises KubectlError when there is none."""
        found: Manifest = json.loads(self.run("get", kind, name, "--output=json"))
        return found

    def find(self, kind: str, name: str) -> Manifest | None:
        """Return one object, or None when there is none."""
        text = self.run("get", kind, name, "--output=json", "--ignore-not-found")
        return json.loads(text) if text.strip() else None

    def list(self, kind: str, *selection: str) -> list[Manifest]:
        """Return objects of a kind: all of the namespace, or those that *selection* selects."""
        found: list[Manifest] = json.loads(self.run("get", kind, "--output=json", *selection))[
            "items"
        ]
        return found

    def patch(self, kind: str, name: str, change: Manifest) -> None:
        """Lay *change* over an object."""
        self.run("patch", kind, name, "--type=merge", f"--patch={json.dumps(change)}")


def split_options(
    arguments: Sequence[str], passing_on: Collection[str] = ()
) -> tuple[tuple[str, ...], list[str]]:
    """Return kubectl's own options among *arguments*, and the others; `--` ends them.

    So does the second word of a command in *passing_on*: what follows is another command's.
    """
    own: list[str] = []
    others: list[str] = []
    waiting = list(arguments)
    while waiting and not (len(others) == 2 and others[0] in passing_on):
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        name = SHORT.get(name, name)
        if name not in OPTIONS or word == "--" or not (equals or waiting):
            others.append(word)
            if word == "--":
                break
            continue
        own.append(f"{name}={value if equals else waiting.pop(0)}")
    return tuple(own), others + waiting


def _reason(complaint: str) -> str:
    """Return kubectl's complaint as one line."""
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    said = lines[-1] if lines else "kubectl failed and did not say why"
    return said.removeprefix("error: ").removeprefix("Error from server ")
