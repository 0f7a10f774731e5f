"""The Broker that children are built for, and what the operator knows besides."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lockkeeper_api import BrokerSpec
from lockkeeper_api.broker import Listener
from lockkeeper_api.cluster.access import User
from lockkeeper_api.meta import API_VERSION
from lockkeeper_api.pod_names import ACCEPT_LOSS_ANNOTATION, FENCED_ANNOTATION
from lockkeeper_operator.brokers.desired.first_journal import FirstJournal
from lockkeeper_operator.brokers.desired.network_part import Parts, network_users
from lockkeeper_operator.kubernetes.manifests import Manifest

DEFAULT_USER = User(name="client")
"""Who may connect when the spec names nobody."""


@dataclass(frozen=True, slots=True)
class Monitoring:
    """What is to be in all monitors of Brokers, as Prometheus' operator writes it."""

    relabelings: tuple[Manifest, ...] = ()
    metric_relabelings: tuple[Manifest, ...] = ()


@dataclass(frozen=True, slots=True)
class Installation:
    """What the operator knows that no Broker says.

    *image* is that of its own release, *optional_kinds* those of other operators that the cluster
    has, *domain* what names in its DNS end with, *class_name* the class of the Brokers
    that it looks after. *pull_secrets* are names of Secrets for the registry of its release,
    *monitoring* is for the monitors of all Brokers.
    """

    image: str
    operator_namespace: str = "lockkeeper-system"
    optional_kinds: frozenset[str] = frozenset()
    domain: str = "cluster.local"
    class_name: str = ""
    pull_secrets: tuple[str, ...] = ()
    monitoring: Monitoring = Monitoring()


@dataclass(frozen=True, slots=True)
class Certificate:
    """A server's certificate, its key, and who vouches for it, each as PEM."""

    certificate: str = ""
    key: str = field(default="", repr=False)
    authority: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """A Broker: who it is, what it is to be.

    *passwords* are those of the users without a Secret of their own, by name: read from where
    they are, or made up outside. *password_hashes* are those of all users, by name, salted
    outside, too. *admin_token* opens the pods' admin endpoint, which shows
    *admin_certificate*; both are made there as well.
    """

    name: str
    namespace: str
    uid: str
    spec: BrokerSpec
    installation: Installation
    annotations: Mapping[str, str] = field(default_factory=dict)
    passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    password_hashes: Mapping[str, str] = field(default_factory=dict, repr=False)
    admin_token: str = field(default="", repr=False)
    admin_certificate: Certificate = Certificate()
    listener_certificates: Mapping[str, Certificate] = field(default_factory=dict)
    """Those that the operator's own authority issues, by the names of listeners."""
    others_authority: str | None = None
    """Who vouches for the first listener's certificate, as PEM, where others issue it."""
    first_journal: FirstJournal | None = None
    """What the journal is filled with before the first start; None for nothing."""
    networks: Parts = ()
    """The networks that the Broker is in."""

    @property
    def replicas_service(self) -> str:
        """Name of the headless Service, in which each pod has a name of its own."""
        return replicas_service_of(self.name)

    @property
    def claim(self) -> str:
        """Name of the claim that holds the journal."""
        return self.spec.storage.existing_claim or f"{self.name}-journal"

    @property
    def users_secret(self) -> str:
        """Name of the Secret with the hashes of all users' passwords, for the pods."""
        return f"{self.name}-users"

    @property
    def networks_secret(self) -> str:
        """Name of the Secret with what bridges to other Brokers log in with."""
        return f"{self.name}-networks"

    @property
    def admin_secret(self) -> str:
        """Name of the Secret with the token of the admin endpoint."""
        return admin_secret_of(self.name)

    @property
    def pods(self) -> tuple[str, ...]:
        """Names of the pods, by their numbers."""
        return tuple(f"{self.name}-{number}" for number in range(self.spec.replicas))

    @property
    def fenced(self) -> frozenset[str]:
        """Names of the pods that a person keeps from serving and from taking over."""
        named = self.annotations.get(FENCED_ANNOTATION, "").split(",")
        return frozenset(map(str.strip, named)) & frozenset(self.pods)

    @property
    def accepts_loss(self) -> bool:
        """Whether a person wants what is sound of a damaged journal to be served."""
        return self.annotations.get(ACCEPT_LOSS_ANNOTATION) == "true"

    @property
    def users(self) -> tuple[User, ...]:
        """Who may connect with a password, bridges of its networks included."""
        return (*users_of(self.spec), *network_users(self.networks))

    @property
    def users_without_secret(self) -> tuple[User, ...]:
        """Those whose passwords the operator makes up."""
        return tuple(user for user in self.users if user.secret_name is None)

    def secret_of(self, user: User) -> str:
        """Return the name of the Secret with the password of *user*."""
        return user.secret_name or made_up_secret_of(self.name, user.name)

    def listener_service(self, listener: str) -> str:
        """Return the name of the Service that leads to a listener of the master."""
        return f"{self.name}-{listener}"

    def issued_secret(self, listener: str) -> str:
        """Return the name of the Secret with a listener's certificate that is not the spec's."""
        return issued_secret_of(self.name, listener)

    def pod_service(self, listener: str, number: int) -> str:
        """Return the name of the Service that leads to a listener of one pod."""
        return f"{self.name}-{listener}-{number}"

    def host(self, service: str) -> str:
        """Return the name in DNS of a Service of this namespace."""
        return f"{service}.{self.namespace}.svc.{self.installation.domain}"

    @property
    def admin_host(self) -> str:
        """The name by which the admin endpoints of all pods are known, whatever their addresses."""
        return self.host(self.replicas_service)

    def pod_host(self, pod: str) -> str:
        """Return the name in DNS of a pod."""
        return f"{pod}.{self.host(self.replicas_service)}"


def users_of(spec: BrokerSpec) -> tuple[User, ...]:
    """Return who may connect with a password."""
    if not spec.access.users and not spec.access.anonymous:
        return (DEFAULT_USER,)
    return tuple(spec.access.users)


def made_up_secret_of(broker: str, user: str) -> str:
    """Return the name of the Secret with a password that the operator made up."""
    return f"{broker}-user-{user}"


def replicas_service_of(broker: str) -> str:
    """Return the name of the Service in which each pod has a name of its own."""
    return f"{broker}-replicas"


def admin_secret_of(broker: str) -> str:
    """Return the name of the Secret with the token of a Broker's admin endpoint."""
    return f"{broker}-admin"


def issued_secret_of(broker: str, listener: str) -> str:
    """Return the name of the Secret with a certificate that was issued for a listener."""
    return f"{broker}-{listener}-tls"


def secret_of_others(broker: str, listener: Listener) -> str | None:
    """Return the Secret in which others put a listener's certificate, None if nobody does."""
    if listener.tls is None:
        return None
    if listener.tls.issuer_ref is not None:
        return issued_secret_of(broker, listener.name)
    return listener.tls.secret_name


def subject_of(
    resource: Manifest,
    installation: Installation,
    passwords: Mapping[str, str] | None = None,
    password_hashes: Mapping[str, str] | None = None,
    admin_token: str = "",
    admin_certificate: Certificate = Certificate(),
    first_journal: FirstJournal | None = None,
    listener_certificates: Mapping[str, Certificate] | None = None,
    others_authority: str | None = None,
    networks: Parts = (),
) -> Subject:
    """Return the subject of a Broker as the API server holds it.

    Raises pydantic.ValidationError for a spec that is no Broker's, which the CRD lets pass where
    a rule would be too dear.
    """
    metadata = resource["metadata"]
    return Subject(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        spec=BrokerSpec.model_validate(resource.get("spec", {})),
        installation=installation,
        annotations=metadata.get("annotations", {}),
        passwords=passwords or {},
        password_hashes=password_hashes or {},
        admin_token=admin_token,
        admin_certificate=admin_certificate,
        first_journal=first_journal,
        listener_certificates=listener_certificates or {},
        others_authority=others_authority,
        networks=networks,
    )


def owner(subject: Subject) -> Manifest:
    """Return the reference that makes a child go with its Broker."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Broker",
        "name": subject.name,
        "uid": subject.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
