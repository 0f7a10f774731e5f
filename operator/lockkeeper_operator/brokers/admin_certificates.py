"""Certificates of admin endpoints: found in their Secrets, renewed in time."""

from base64 import b64decode
from collections.abc import Sequence

from lockkeeper_operator.brokers.credentials import Who
from lockkeeper_operator.brokers.desired.subject import (
    Certificate,
    admin_secret_of,
    replicas_service_of,
)
from lockkeeper_operator.certificates.authority import Authority, now
from lockkeeper_operator.certificates.issuing import Pair, facts_of, issued
from lockkeeper_operator.kubernetes.api.kinds import SECRET
from lockkeeper_operator.kubernetes.caches.caches import Caches
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import CERTIFICATE_FILE, KEY_FILE


class AdminCertificates:
    """Those of all Brokers. What is issued lies in a Secret, or is issued anew: none is kept."""

    def __init__(self, authority: Authority, caches: Caches, domain: str) -> None:
        """*domain* is what names in the cluster's DNS end with."""
        self._authority, self._caches, self._domain = authority, caches, domain

    def of(self, who: Who) -> Certificate:
        """Return a Broker's: the one that it has, as long as that is good."""
        trust, names = self._authority.trust, names_of(who, self._domain)
        secret = self._caches.children[SECRET.name].get(who.namespace, admin_secret_of(who.name))
        pair = None if secret is None else _pair_in(secret)
        if pair is None or not _is_good(pair, trust.own, names):
            pair = issued(trust.own, names, now())
        return Certificate(pair.certificate, pair.key, trust.authorities)


def names_of(who: Who, domain: str) -> tuple[str, ...]:
    """Return the names that pods of a Broker are known by: all of them, and each of its own."""
    short = f"{replicas_service_of(who.name)}.{who.namespace}.svc"
    return short, f"{short}.{domain}", f"*.{short}.{domain}"


def _is_good(pair: Pair, authority: Pair, names: Sequence[str]) -> bool:
    facts = facts_of(pair, authority.certificate)
    return facts is not None and facts.is_fresh(now()) and facts.names == tuple(names)


def _pair_in(secret: Manifest) -> Pair | None:
    data = secret.get("data") or {}
    try:
        return Pair(*(b64decode(data[name]).decode() for name in (CERTIFICATE_FILE, KEY_FILE)))
    except (KeyError, ValueError):
        return None
