"""JournalAnalysis of a Broker that asks for regular ones: `spec.analytics.schedule`."""

from lockkeeper_api.hashes import hash_of_text
from lockkeeper_api.journal_analysis import NAME_CHARACTERS_MAX
from lockkeeper_api.meta import API_VERSION
from lockkeeper_api.pod_names import CLASS_LABEL
from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest

HASH_CHARACTERS = 6


def analysis_name(broker: str) -> str:
    """Return the analysis's name; a Broker's may be longer than it can be."""
    name = f"{broker}-regular"
    if len(name) <= NAME_CHARACTERS_MAX:
        return name
    kept = NAME_CHARACTERS_MAX - HASH_CHARACTERS - 1
    return f"{name[:kept].rstrip('-')}-{hash_of_text(broker)[:HASH_CHARACTERS]}"


def build(subject: Subject) -> Manifest | None:
    """Return the analysis, or None for a Broker that asks for none. Its page is served."""
    analytics = subject.spec.analytics
    if analytics.schedule is None:
        return None
    return {
        "apiVersion": API_VERSION,
        "kind": "JournalAnalysis",
        "metadata": metadata(subject, analysis_name(subject.name), more_labels=_class(subject)),
        "spec": {
            "source": {"broker": subject.name},
            "schedule": {"cron": analytics.schedule, "timeZone": analytics.time_zone},
            "suspend": analytics.suspended,
        },
    }


def _class(subject: Subject) -> dict[str, str]:
    """Return what keeps the analysis with the operator of its Broker."""
    name = subject.installation.class_name
    return {CLASS_LABEL: name} if name else {}
