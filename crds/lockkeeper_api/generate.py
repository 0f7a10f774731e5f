"""Writes what is made from the models: `python -m lockkeeper_api.generate [--check]`.

The CustomResourceDefinitions in crds/ and the reference pages in docs/reference/. With `--check`
nothing is written, and the exit code is 1 if a file is not what the models say.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

from lockkeeper_api.broker import Broker
from lockkeeper_api.broker_network import BrokerNetwork
from lockkeeper_api.definitions import all_definitions
from lockkeeper_api.destination import Destination
from lockkeeper_api.journal_analysis import JournalAnalysis
from lockkeeper_api.journal_backup import JournalBackup
from lockkeeper_api.reference import policies_page, reference_page

PROJECT = Path(__file__).parents[2]
CHART_FOLDER = "charts/lockkeeper/files/crds"
"""A chart reaches no file outside itself."""
NOTE = "# Written by `make crds` from the models in crds/lockkeeper_api. Do not edit.\n"


def generated_files() -> dict[str, str]:
    """Return the text of every generated file by its path in the project."""
    definitions = {_file_name(each): _yaml(each) for each in all_definitions().values()}
    return {
        f"{folder}/{name}": text
        for folder in ("crds", CHART_FOLDER)
        for name, text in definitions.items()
    } | {
        "docs/reference/broker.md": reference_page(Broker, "../samples/broker.yaml"),
        "docs/reference/destination.md": reference_page(
            Destination, "../samples/destinations.yaml"
        ),
        "docs/reference/broker-network.md": reference_page(
            BrokerNetwork, "../samples/broker-network.yaml"
        ),
        "docs/reference/journal-analysis.md": reference_page(
            JournalAnalysis, "../samples/journal-analysis.yaml"
        ),
        "docs/reference/journal-backup.md": reference_page(
            JournalBackup, "../samples/journal-backup.yaml"
        ),
        "docs/reference/policies.md": policies_page(),
    }


def _file_name(definition: dict[str, Any]) -> str:
    """Return the name of a definition's file."""
    names, group = definition["spec"]["names"], definition["spec"]["group"]
    return f"{group}_{names['plural']}.yaml"


def _yaml(definition: dict[str, Any]) -> str:
    """Return a definition as YAML that no one edits."""
    return NOTE + yaml.dump(definition, Dumper=_Dumper, sort_keys=False, width=LINE_MAX)


LINE_MAX = 1_000_000
"""Characters: a value's line is never wrapped."""
LEVELS_IN_A_LINE = 2


class _Dumper(yaml.SafeDumper):
    """Writes a field with all its rules as one line, which halves the file.

    Shared parts are written out in full: Kubernetes' tools do not all read YAML's anchors.
    """

    def represent_mapping(
        self, tag: str, mapping: Any, flow_style: bool | None = None
    ) -> yaml.MappingNode:
        """Return the node of *mapping*, in one line if there is little in it."""
        one_line = _levels(mapping) <= LEVELS_IN_A_LINE
        return super().represent_mapping(tag, mapping, flow_style=one_line or flow_style)

    def ignore_aliases(self, _data: Any) -> bool:
        """Return True: never an anchor."""
        return True


def _levels(value: Any) -> int:
    """Return how deep mappings and lists are nested in *value*, 0 for a leaf's own."""
    inner = value.values() if isinstance(value, dict) else value
    return max((1 + _levels(item) for item in inner if isinstance(item, dict | list)), default=0)


def stale_files() -> list[str]:
    """Return the generated files that are absent or not what the models say."""
    return [
        path
        for path, text in generated_files().items()
        if not (PROJECT / path).is_file() or (PROJECT / path).read_text("utf-8") != text
    ]


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` only say which are stale; returns the exit code."""
    stale = stale_files()
    if "--check" in arguments:
        for path in stale:
            print(f"{path} is not what the models say: run `make crds`", file=sys.stderr)
        return 1 if stale else 0
    files = generated_files()
    for path in stale:
        (PROJECT / path).parent.mkdir(parents=True, exist_ok=True)
        (PROJECT / path).write_text(files[path], "utf-8")
        print(f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
