"""The page about tests: its tests run as they stand."""

import re
from pathlib import Path

import pytest

pytest_plugins = "pytester"

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text("utf-8")


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_first_test_of_the_page_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(blocks()[0])
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


@pytest.mark.slow
@pytest.mark.patient
def test_the_others_pass_with_a_file_beside_them(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("\n".join(blocks()[1:]))
    yaml = "apiVersion: lockkeeper.dev/v1alpha1\nkind: Broker\nmetadata: {name: shop}\n"
    (pytester.path / "broker.yaml").write_text(yaml)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
