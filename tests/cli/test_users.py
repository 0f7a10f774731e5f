"""`lockkeeper user` writes what brokers read, and shows no password."""

import io
import stat
from pathlib import Path

import pytest

from lockkeeper.cli.main import main
from lockkeeper.server.secrets import read_users
from lockkeeper_api.passwords import matches


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKKEEPER_PASSWORD", "two pounds of tea")


def test_a_user_is_set_changed_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    secrets = tmp_path / "secrets"
    for name in ("anna", "bob"):
        assert main(["user", name, "--secrets", str(secrets)]) == 0
    assert matches("two pounds of tea", read_users(secrets)["anna"])
    monkeypatch.delenv("LOCKKEEPER_PASSWORD")
    monkeypatch.setattr("sys.stdin", io.StringIO("coffee\n"))
    assert main(["user", "anna", "--secrets", str(secrets)]) == 0
    users = read_users(secrets)
    assert (list(users), matches("coffee", users["anna"])) == (["anna", "bob"], True)
    assert main(["user", "bob", "--remove", "--secrets", str(secrets)]) == 0
    assert list(read_users(secrets)) == ["anna"]
    said = capsys.readouterr()
    assert "tea" not in said.out + said.err
    assert stat.S_IMODE((secrets / "users").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["a:b"], "no colon"),
        (["a b"], "no white space"),
        (["nobody", "--remove"], "there is no user nobody"),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["user", *arguments, "--secrets", str(tmp_path / "secrets")]) == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "secrets").exists()


def test_an_empty_password_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOCKKEEPER_PASSWORD", "")
    assert main(["user", "anna", "--secrets", str(tmp_path)]) == 2
    assert "the password is empty" in capsys.readouterr().err
