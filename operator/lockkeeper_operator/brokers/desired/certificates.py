"""Certificates of cert-manager, which writes them into the Secrets that pods have mounted."""

from collections.abc import Iterator

from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.server_names import server_names
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest

CERTIFICATE = "Certificate"


def build(subject: Subject) -> Iterator[Manifest]:
    """Yield a Certificate for each listener with an issuer, where the cluster knows the kind."""
    if CERTIFICATE not in subject.installation.optional_kinds:
        return
    for listener in subject.spec.listeners:
        if listener.tls is None or listener.tls.issuer_ref is None:
            continue
        issuer = listener.tls.issuer_ref
        secret = subject.issued_secret(listener.name)
        names = server_names(subject.name, subject.namespace, subject.installation.domain, listener)
        yield {
            "apiVersion": "cert-manager.io/v1",
            "kind": CERTIFICATE,
            "metadata": metadata(subject, subject.listener_service(listener.name)),
            "spec": {
                "secretName": secret,
                "dnsNames": list(names),
                "issuerRef": {"name": issuer.name, "kind": issuer.kind, "group": issuer.group},
                "usages": ["digital signature", "key encipherment", "server auth"],
                "privateKey": {"rotationPolicy": "Always"},
            },
        }
