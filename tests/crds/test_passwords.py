"""Hashes of passwords: made with a salt, checked, and refused with a reason when they are none."""

import base64
import hashlib

import pytest

from lockkeeper_api.passwords import InvalidHashError, check_hash, hashed, matches

SALT = b"sixteen bytes of"


def test_a_password_matches_its_own_hash_only() -> None:
    hash = hashed("open sesame", SALT)
    assert matches("open sesame", hash)
    assert not matches("open sesame ", hash)
    assert not matches("", hash)


def test_the_form_is_that_of_scrypt_as_others_compute_it() -> None:
    key = hashlib.scrypt(b"tea", salt=SALT, n=16384, r=8, p=1, dklen=32)
    expected = (
        f"scrypt$16384$8$1${base64.b64encode(SALT).decode()}${base64.b64encode(key).decode()}"
    )
    assert hashed("tea", SALT) == expected


def test_the_same_salt_makes_the_same_hash_and_another_one_another() -> None:
    assert hashed("tea", SALT) == hashed("tea", SALT)
    assert hashed("tea", SALT) != hashed("tea", SALT[::-1])


def test_letters_of_all_the_world_count() -> None:
    assert matches("pässwörd 密码", hashed("pässwörd 密码", SALT))


@pytest.mark.parametrize("salt", [b"", b"x" * 65])
def test_a_salt_of_the_wrong_length_is_refused(salt: bytes) -> None:
    with pytest.raises(ValueError, match="1 to 64 bytes"):
        hashed("tea", salt)


@pytest.mark.parametrize(
    ("hash", "reason"),
    [
        ("", "expected scrypt"),
        ("tea", "expected scrypt"),
        ("bcrypt$16384$8$1$AAAA$AAAA", "expected scrypt"),
        ("scrypt$many$8$1$AAAA$AAAA", "numbers and base64"),
        ("scrypt$16384$8$1$A?$AAAA", "numbers and base64"),
        ("scrypt$16383$8$1$AAAA$AAAA", "power of 2"),
        ("scrypt$1073741824$8$1$AAAA$AAAA", "power of 2"),
        ("scrypt$16384$64$1$AAAA$AAAA", "R is not"),
        ("scrypt$16384$8$0$AAAA$AAAA", "P not"),
        ("scrypt$16384$8$1$$AAAA", "the salt is not"),
        ("scrypt$16384$8$1$AAAA$AAAA", "the key not 32"),
    ],
)
def test_what_is_no_hash_is_refused_and_never_shown(hash: str, reason: str) -> None:
    with pytest.raises(InvalidHashError, match=reason) as refusal:
        matches("tea", hash)
    assert not hash or hash not in str(refusal.value)
    with pytest.raises(InvalidHashError):
        check_hash(hash)
