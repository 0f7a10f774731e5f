"""Secret BROKER-client: all that an application needs, in the keys of servicebinding.io."""

from lockkeeper_api.broker import Listener
from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.encoding import encoded
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import AUTHORITY_FILE

BINDING_TYPE = "activemq"
RECONNECTING = (
    "initialReconnectDelay=100"
    "&maxReconnectDelay=500"
    "&nested.connectionTimeout=1000"
    "&nested.wireFormat.maxInactivityDuration=10000"
)
"""In ms, as ActiveMQ's clients and ours read it. Without it, delays between attempts double up to
30 s, and a node that lost its power is waited for that long: a take-over would be over long before
its clients noticed. Linux refuses a pod's dials six times at once, then once a second, and is
silent else (icmp_ratelimit): attempts that begin 10 ms apart would use that up."""


def client_secret_name(subject: Subject) -> str:
    """Return the Secret's name."""
    return f"{subject.name}-client"


def build(subject: Subject) -> Manifest:
    """Return the Secret: the first listener's address, who vouches for its certificate, and the
    credentials of the first user whose password the operator made up.
    """
    listener = subject.spec.listeners[0]
    values = {
        "type": BINDING_TYPE,
        "provider": "lockkeeper",
        "host": subject.host(subject.listener_service(listener.name)),
        "port": str(listener.port),
        "uri": failover_url(subject, listener),
    }
    issued = subject.listener_certificates.get(listener.name)
    authority = subject.others_authority if issued is None else issued.authority
    if authority:
        values[AUTHORITY_FILE] = authority
    for user in subject.users_without_secret[:1]:
        if user.name in subject.passwords:
            values |= {"username": user.name, "password": subject.passwords[user.name]}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(subject, client_secret_name(subject)),
        "type": f"servicebinding.io/{BINDING_TYPE}",
        "data": encoded(values),
    }


def failover_url(subject: Subject, listener: Listener) -> str:
    """Return the URL with every pod, for ActiveMQ's clients and ours."""
    scheme = "tcp" if listener.tls is None else "ssl"
    urls = (f"{scheme}://{subject.pod_host(pod)}:{listener.port}" for pod in subject.pods)
    return f"failover:({','.join(urls)})?{RECONNECTING}"
