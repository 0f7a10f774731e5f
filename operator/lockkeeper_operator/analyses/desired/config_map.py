"""ConfigMap: Spark's settings and the executors' template, for drivers of ours."""

import yaml

from lockkeeper_operator.analyses.desired.metadata import metadata
from lockkeeper_operator.analyses.desired.pod_template import pod_template
from lockkeeper_operator.analyses.desired.spark_settings import native_settings
from lockkeeper_operator.analyses.names import EXECUTOR, EXECUTOR_FILE, SETTINGS_FILE
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: AnalysisSubject) -> Manifest | None:
    """Return the ConfigMap, or None for engines that bring these themselves."""
    if subject.engine != "native":
        return None
    template = {"apiVersion": "v1", "kind": "Pod", **pod_template(subject, EXECUTOR)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(subject, subject.account),
        "data": {
            SETTINGS_FILE: _properties(native_settings(subject)),
            EXECUTOR_FILE: yaml.safe_dump(template, sort_keys=False),
        },
    }


def _properties(settings: dict[str, str]) -> str:
    """Return settings as Java reads them from a file."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in settings.items())


def _escaped(text: str) -> str:
    for plain, escaped in (
        ("\\", "\\\\"),
        ("\n", "\\n"),
        ("\r", "\\r"),
        ("=", "\\="),
        (":", "\\:"),
    ):
        text = text.replace(plain, escaped)
    # A blank ends a key, and one that begins a value is not seen.
    return text.replace(" ", "\\ ")
