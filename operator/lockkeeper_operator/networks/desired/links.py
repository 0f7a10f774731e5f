"""Bridges between the Brokers of a network: who dials whom."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from lockkeeper_operator.networks.desired.network import Link, Member, Network


def links_of(network: Network, members: Sequence[Member]) -> tuple[Link, ...]:
    """Return the bridges.

    Both Brokers of a pair dial, one way each, unless bridges are duplex: either end then makes its
    own half anew as soon as it is back, and waits for nobody to notice that. Besides, nobody is
    told the password in a bridge's settings.
    """
    found: list[Link] = []
    for dialler, dialled in _pairs(network, members):
        found.append(Link(dialler, dialled))
        if not network.spec.connector.duplex:
            found.append(Link(dialled, dialler))
    return tuple(found)


def _pairs(network: Network, members: Sequence[Member]) -> Iterator[tuple[Member, Member]]:
    """Yield who is bridged to whom; a spoke comes before its hub."""
    in_order = sorted(members, key=lambda member: member.key)
    if network.hub is None:
        yield from combinations(in_order, 2)
        return
    hub = next((each for each in in_order if each.key == network.hub), None)
    if hub is not None:
        yield from ((each, hub) for each in in_order if each is not hub)
