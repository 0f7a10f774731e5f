"""Certificates of admin endpoints and listeners: found in their Secrets, renewed in time."""

from base64 import b64decode
from collections.abc import Sequence

from lockkeeper_api import BrokerSpec
from lockkeeper_operator.brokers.credentials import Who
from lockkeeper_operator.brokers.desired.server_names import server_names
from lockkeeper_operator.brokers.desired.subject import (
    Certificate,
    Installation,
    admin_secret_of,
    issued_secret_of,
    replicas_service_of,
)
from lockkeeper_operator.certificates.authority import Authority, now
from lockkeeper_operator.certificates.issuing import Pair, facts_of, issued
from lockkeeper_operator.kubernetes.api.kinds import CERTIFICATE, SECRET
from lockkeeper_operator.kubernetes.api.server import ApiServer
from lockkeeper_operator.kubernetes.caches.caches import Caches
from lockkeeper_operator.kubernetes.children.ownership import Owner, stranger
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import CERTIFICATE_FILE, KEY_FILE


class Certificates:
    """Those that the authority issues. What is issued lies in a Secret, or is issued anew: none is
    kept.
    """

    def __init__(self, authority: Authority, api: ApiServer, caches: Caches) -> None:
        self._authority, self._api, self._caches = authority, api, caches

    def of_admin(self, who: Who, domain: str) -> Certificate:
        """Return that of a Broker's admin endpoints; *domain* is the end of names in DNS."""
        return self._of(who.namespace, admin_secret_of(who.name), names_of(who, domain))

    async def of_listeners(
        self, who: Who, spec: BrokerSpec, installation: Installation
    ) -> dict[str, Certificate]:
        """Return those of listeners whose spec leaves them to the operator. Raises ApiError.

        That is a listener with an issuer, too, while the cluster does not know cert-manager, unless
        cert-manager was there once and has left a certificate.
        """
        found = {}
        for listener in spec.listeners:
            if listener.tls is None or listener.tls.secret_name is not None:
                continue
            secret = issued_secret_of(who.name, listener.name)
            if listener.tls.issuer_ref is not None and (
                CERTIFICATE.name in installation.optional_kinds
                or await self._is_anothers(who, secret)
            ):
                continue
            names = server_names(who.name, who.namespace, installation.domain, listener)
            found[listener.name] = self._of(who.namespace, secret, names)
        return found

    async def _is_anothers(self, who: Who, name: str) -> bool:
        secret = await self._api.read_if_there(SECRET, who.namespace, name)
        return secret is not None and bool(stranger(secret, Owner(who.name, who.uid)))

    def _of(self, namespace: str, name: str, names: tuple[str, ...]) -> Certificate:
        """Return the certificate that a Secret has, as long as that is good."""
        trust = self._authority.trust
        secret = self._caches.children[SECRET.name].get(namespace, name)
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
