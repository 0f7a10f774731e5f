"""docs/security.md says what is so: its resources, its commands, its table of policies."""

import re
import subprocess
from pathlib import Path

import pytest
from cli_support import COMMAND
from test_documented_commands import conversations, matches

from lockkeeper_api import parse_resources
from lockkeeper_api.policy import DestinationPolicy

DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"
HEADER = "apiVersion: lockkeeper.dev/v1alpha1\nkind: Broker\nmetadata: {name: b}\n"
RESOURCES = re.findall(r"^```yaml\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.M | re.S)


@pytest.mark.parametrize("text", RESOURCES)
def test_its_resources_are_valid(text: str) -> None:
    (broker,) = parse_resources(HEADER + text, "security.md").brokers
    assert broker.spec.access.permissions or broker.spec.listeners[0].tls is not None


def test_its_commands_do_what_it_says(tmp_path: Path) -> None:
    found = conversations(DOCUMENT)
    assert found
    for command, output in found:
        done = subprocess.run(
            ["bash", "-c", command.replace("lockkeeper", str(COMMAND))],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert matches(output, done.stdout), done.stderr
    assert (tmp_path / "secrets" / "users").read_text().startswith("anna:scrypt$")


def test_it_tells_of_every_field_of_a_policy() -> None:
    table = DOCUMENT.read_text("utf-8").partition("| field | |")[2]
    told = set(re.findall(r"`(\w+)`", table))
    assert told == {field.alias or name for name, field in DestinationPolicy.model_fields.items()}
