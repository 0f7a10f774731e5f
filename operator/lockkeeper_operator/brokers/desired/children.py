"""All children of a Broker, in the order in which they are applied."""

from collections.abc import Callable, Iterable, Iterator

from lockkeeper_operator.brokers.desired import (
    admin_secret,
    analysis,
    certificates,
    claim,
    client_secret,
    client_services,
    config_map,
    disruption_budget,
    headless_service,
    lease,
    listener_secrets,
    monitor,
    network_policy,
    networks_secret,
    role,
    role_binding,
    routes,
    service_account,
    stateful_set,
    user_secrets,
    users_secret,
)
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest

Builder = Callable[[Subject], Manifest | Iterable[Manifest] | None]

BUILDERS: tuple[Builder, ...] = (
    service_account.build,
    role.build,
    role_binding.build,
    lease.build,
    admin_secret.build,
    user_secrets.build,
    users_secret.build,
    listener_secrets.build,
    networks_secret.build,
    client_secret.build,
    config_map.build,
    claim.build,
    headless_service.build,
    client_services.build,
    network_policy.build,
    disruption_budget.build,
    stateful_set.build,
    analysis.build,
    certificates.build,
    routes.build,
    monitor.build,
)
"""What pods need comes before them, what clusters need not know comes last."""


def children(subject: Subject) -> Iterator[Manifest]:
    """Yield the manifests of all children that are wanted."""
    for build in BUILDERS:
        built = build(subject)
        if isinstance(built, dict):
            yield built
        elif built is not None:
            yield from built
