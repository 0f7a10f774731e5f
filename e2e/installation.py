"""The operator, installed by the chart as people do."""

from dataclasses import dataclass
from pathlib import Path

from kube import Manifest, Namespace, helm_command, run

CHART = Path(__file__).parents[1] / "charts" / "lockkeeper"
SYSTEM = "lockkeeper-system"
RELEASE = "lockkeeper"
SELECTOR = "app.kubernetes.io/name=lockkeeper-operator"


@dataclass(frozen=True, slots=True)
class Installation:
    """One release of the chart."""

    image: str
    broker_image: str
    run: str
    analytics_image: str = ""

    def install(self, *settings: str) -> None:
        """Install it, or upgrade it to other settings, and wait until it runs."""
        chosen = (
            *_image("image", self.image),
            *_image("brokerImage", self.broker_image),
            *(_image("analyticsImage", self.analytics_image) if self.analytics_image else ()),
            # Pods of an earlier run may have another image of the same name.
            f"podAnnotations.run={self.run}",
            *settings,
        )
        run(
            [
                *helm_command(), "upgrade", "--install", RELEASE, str(CHART),
                "--namespace", SYSTEM, "--create-namespace", "--wait", "--timeout=2m",
                *(part for setting in chosen for part in ("--set", setting)),
            ]
        )  # fmt: skip

    @property
    def namespace(self) -> Namespace:
        """Where it runs."""
        return Namespace(SYSTEM)

    def pods(self) -> list[Manifest]:
        """Return its pods."""
        return self.namespace.items("pods", SELECTOR)

    def scale(self, replicas: int) -> None:
        """Let there be so many replicas, and wait for it."""
        self.namespace.kubectl("scale", f"deployment/{RELEASE}", f"--replicas={replicas}")
        self.namespace.kubectl(
            "wait", f"deployment/{RELEASE}", "--timeout=90s",
            f"--for=jsonpath={{.status.replicas}}={replicas}" if replicas
            else "--for=jsonpath={.spec.replicas}=0",
        )  # fmt: skip
        if replicas:
            self.namespace.kubectl("rollout", "status", f"deployment/{RELEASE}", "--timeout=90s")
        else:
            self.namespace.kubectl("wait", "pods", "-l", SELECTOR, "--for=delete", "--timeout=90s")


def _image(value: str, image: str) -> tuple[str, str]:
    repository, _, tag = image.rpartition(":")
    return f"{value}.repository={repository}", f"{value}.tag={tag}"
