"""Secrets with the passwords that the operator made up, for who is to connect with them."""

from collections.abc import Iterator

from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.encoding import encoded
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: Subject) -> Iterator[Manifest]:
    """Yield a Secret for each such user; KeyError for a password that is not there."""
    for user in subject.users_without_secret:
        values = {"username": user.name, "password": subject.passwords[user.name]}
        yield {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata(subject, subject.secret_of(user)),
            "type": "kubernetes.io/basic-auth",
            "data": encoded(values),
        }
