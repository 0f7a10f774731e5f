"""kubectl's own options stand anywhere; what is behind a forwarded command is that command's."""

import pytest

from lockkeeper.cli.cluster.forwarding import FORWARDED
from lockkeeper.cli.cluster.kubectl import Kubectl, KubectlError, split_options
from lockkeeper.cli.cluster.main import main


@pytest.mark.parametrize(
    ("arguments", "own", "others"),
    [
        (["status", "orders"], (), ["status", "orders"]),
        (["-n", "shop", "status", "orders"], ("--namespace=shop",), ["status", "orders"]),
        (["status", "orders", "--namespace", "shop"], ("--namespace=shop",), ["status", "orders"]),
        (["status", "--context=far", "orders"], ("--context=far",), ["status", "orders"]),
        (["status", "orders", "--json"], (), ["status", "orders", "--json"]),
        (["status", "orders", "-n"], (), ["status", "orders", "-n"]),
    ],
)
def test_options_are_found_wherever_they_stand(
    arguments: list[str], own: tuple[str, ...], others: list[str]
) -> None:
    assert split_options(arguments, FORWARDED) == (own, others)


def test_a_forwarded_command_keeps_its_own_options() -> None:
    arguments = ["dlq", "-n", "shop", "orders", "list", "-n", "5"]
    own, others = split_options(arguments, FORWARDED)
    assert own == ("--namespace=shop",)
    assert others == ["dlq", "orders", "list", "-n", "5"]


def test_two_dashes_end_them() -> None:
    own, others = split_options(["send", "--", "orders", "-n", "5"], ())
    assert (own, others) == ((), ["send", "--", "orders", "-n", "5"])


def test_another_namespace_replaces_the_one_before() -> None:
    kubectl = Kubectl(("--context=far", "--namespace=shop")).in_namespace("system")
    assert kubectl.options == ("--context=far", "--namespace=system")


def test_without_kubectl_the_error_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECTL", "no-such-kubectl")
    assert main(["status", "orders"]) == 2
    assert "no-such-kubectl is not installed" in capsys.readouterr().err
    with pytest.raises(KubectlError):
        Kubectl().run("version")
