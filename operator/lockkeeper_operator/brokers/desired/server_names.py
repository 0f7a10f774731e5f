"""Names by which clients know a listener: those that its certificate must have."""

from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

from lockkeeper_api.broker import Listener


def server_names(broker: str, namespace: str, domain: str, listener: Listener) -> tuple[str, ...]:
    """Return the names in DNS: of Services, of pods, and those that the listener says."""
    return tuple(dict.fromkeys(_names(broker, namespace, domain, listener)))


def _names(broker: str, namespace: str, domain: str, listener: Listener) -> Iterator[str]:
    service = f"{broker}-{listener.name}"
    yield from (service, f"{service}.{namespace}", f"{service}.{namespace}.svc")
    yield f"{service}.{namespace}.svc.{domain}"
    yield f"*.{broker}-replicas.{namespace}.svc"
    yield f"*.{broker}-replicas.{namespace}.svc.{domain}"
    if listener.route is not None:
        yield listener.route.host
    for url in listener.advertised_urls:
        host = urlsplit(url).hostname
        if host and not _is_address(host):
            yield host


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
