"""Certificates of the operator: which are good, and when they are renewed."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from lockkeeper_operator.certificates.issuing import (
    AUTHORITY_LIFE,
    CERTIFICATE_LIFE,
    Pair,
    facts_of,
    issued,
    new_authority,
)

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
NAMES = ("demo-replicas.shop.svc", "*.demo-replicas.shop.svc")


def test_a_certificate_is_for_its_names_and_renewed_before_its_end() -> None:
    authority = new_authority("own", NOW)
    facts = facts_of(issued(authority, NAMES, NOW), authority.certificate)
    assert facts is not None
    assert facts.names == NAMES
    assert facts.ends == NOW + CERTIFICATE_LIFE
    assert facts.is_fresh(NOW)
    assert facts.is_fresh(NOW + timedelta(days=59))
    assert not facts.is_fresh(NOW + timedelta(days=60, hours=1))
    assert not facts.is_fresh(NOW - timedelta(hours=2)), "the clock went back"


def test_an_authority_vouches_for_itself_and_outlives_what_it_vouches_for() -> None:
    authority = new_authority("own", NOW)
    facts = facts_of(authority, authority.certificate)
    assert facts is not None
    renewed_at = NOW + AUTHORITY_LIFE * 2 / 3
    assert facts.is_fresh(renewed_at - timedelta(days=1))
    assert not facts.is_fresh(renewed_at + timedelta(days=1))
    assert renewed_at + CERTIFICATE_LIFE < facts.ends


@pytest.mark.parametrize(
    "spoiled",
    [
        lambda pair, other: Pair(pair.certificate, other.key),
        lambda pair, other: other,
        lambda pair, other: Pair("nonsense", pair.key),
        lambda pair, other: Pair(pair.certificate, ""),
        lambda pair, other: Pair(pair.certificate[:200], pair.key),
    ],
    ids=["another key", "another authority", "no certificate", "no key", "half a certificate"],
)
def test_what_does_not_fit_is_none(spoiled: Callable[[Pair, Pair], Pair]) -> None:
    authority, stranger = new_authority("own", NOW), new_authority("own", NOW)
    pair, other = issued(authority, NAMES, NOW), issued(stranger, NAMES, NOW)
    assert facts_of(pair, authority.certificate) is not None
    assert facts_of(spoiled(pair, other), authority.certificate) is None


def test_neither_keys_nor_passwords_are_shown_where_values_are_printed() -> None:
    authority = new_authority("own", NOW)
    assert authority.key not in repr(authority)
