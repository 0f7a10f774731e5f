"""The JournalAnalysis that children are built for, and what is known besides."""

from dataclasses import dataclass

from lockkeeper_api.analysis.output import Serve
from lockkeeper_api.analysis.sizing import Executors
from lockkeeper_api.journal_analysis import JournalAnalysisSpec
from lockkeeper_api.meta import API_VERSION
from lockkeeper_operator.analyses.engine import ChosenEngine
from lockkeeper_operator.brokers.journal import Journal
from lockkeeper_operator.kubernetes.children.ownership import Owner
from lockkeeper_operator.kubernetes.hashes import hash_of
from lockkeeper_operator.kubernetes.manifests import Manifest

RUN_HASH_CHARACTERS = 6
EXECUTORS = 2
"""How many where a spec does not say."""
NO_NEW_RUN = {"suspend", "ttl_seconds_after_finished", "backoff_limit"}
"""Parts of the spec that a run which is there already can do without."""


@dataclass(frozen=True, slots=True)
class AnalysisSubject:
    """A JournalAnalysis: who it is, what it is to be, and with what.

    *default_image* is that of the operator's release, to be had with *default_pull_secrets*;
    *domain* is what names in the cluster's DNS end with.
    """

    name: str
    namespace: str
    uid: str
    spec: JournalAnalysisSpec
    journal: Journal
    engine: ChosenEngine
    default_image: str
    domain: str = "cluster.local"
    default_pull_secrets: tuple[str, ...] = ()

    @property
    def pull_secrets(self) -> tuple[str, ...]:
        """Names of Secrets with which nodes fetch the image."""
        image = self.spec.image
        own = image.pull_secrets or image.name is not None
        return tuple(image.pull_secrets) if own else self.default_pull_secrets

    @property
    def owner(self) -> Owner:
        """The owner of all children."""
        return Owner(self.instance, self.uid)

    @property
    def instance(self) -> str:
        """What children are labelled with; no Broker can have such a name."""
        return f"analysis.{self.name}"

    @property
    def account(self) -> str:
        """Name of the drivers' ServiceAccount, of their Role, and of the Spark settings."""
        return f"{self.name}-analysis"

    @property
    def driver_service(self) -> str:
        """Name of the headless Service by which executors find the driver."""
        return f"{self.name}-driver"

    @property
    def page(self) -> str:
        """Name of the Deployment, the Service and the claim of a served page."""
        return f"{self.name}-page"

    @property
    def run(self) -> str:
        """Name of the run, or of what makes runs by a schedule.

        A single run is another one when the spec asks for other results.
        """
        if self.spec.schedule is not None:
            return self.name
        said = self.spec.model_dump(
            mode="json", by_alias=True, exclude_defaults=True, exclude=NO_NEW_RUN
        )
        return f"{self.name}-{hash_of(said)[:RUN_HASH_CHARACTERS]}"

    @property
    def image(self) -> str:
        """The image of drivers and executors."""
        return self.spec.image.name or self.default_image

    @property
    def executors(self) -> Executors:
        """The executors, with defaults where the spec says nothing."""
        return self.spec.executors or Executors()

    @property
    def served(self) -> Serve | None:
        """How results are served, None where they go elsewhere."""
        return self.spec.output.served

    @property
    def kept_as(self) -> str:
        """Name of the source's records in the history."""
        history = self.spec.history
        given = history.broker if history is not None else None
        return given or self.spec.source.broker or self.name

    @property
    def has_executors(self) -> bool:
        """Whether others than the driver read."""
        return self.engine != "local"


def owner_reference(subject: AnalysisSubject) -> Manifest:
    """Return the reference that makes a child go with its analysis: to delete it is to cancel."""
    return {
        "apiVersion": API_VERSION,
        "kind": "JournalAnalysis",
        "name": subject.name,
        "uid": subject.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
