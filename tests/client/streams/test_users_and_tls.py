"""Users, their rights, and links that are encrypted."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "server"))

import certificates
from secured import Secured, replace
from stream_client_kit import run, take, until

from lockkeeper.client import ConnectionFailedError, TlsOptions
from lockkeeper.client.streams import (
    FIRST,
    Credentials,
    GroupSettings,
    Means,
    NotAllowedError,
    ReceivedMessage,
)
from lockkeeper.client.streams.aio import connect

pytestmark = pytest.mark.skipif(certificates.missing() is not None, reason="there is no openssl")
SPEC = """\
  listeners:
  - name: streams
    protocol: rocketmq
    port: PORT
    tls: {secretName: certificate, clientCertificates: Ignored}
  access:
    users: [{name: anna, secretName: anna}, {name: bert, secretName: bert}]
    permissions:
    - {match: ">", read: [anna], write: [anna], admin: [anna]}
"""
ANNA = Credentials("anna", "tea", "tea")
BERT = Credentials("bert", "milk", "milk")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> certificates.Authority:
    return certificates.Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def broker(
    authority: certificates.Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    def prepare(running: Secured) -> None:
        directory = running.secrets / "tls" / "streams"
        directory.mkdir(parents=True)
        pair = authority.issue("broker")
        for name, source in zip(("tls.crt", "tls.key"), pair, strict=True):
            replace(directory / name, source.read_text())

    directory = tmp_path_factory.mktemp("tls") / "broker"
    passwords = {"anna": "tea", "bert": "milk"}
    running = Secured(directory, SPEC, passwords, prepare, listens=False)
    yield running
    running.running.stop()


def test_users_have_their_rights_over_tls(
    broker: Secured, authority: certificates.Authority
) -> None:
    means = Means(tls=TlsOptions(ca_file=authority.certificate))
    names = f"127.0.0.1:{broker.port}"

    async def main() -> None:
        seen: list[str] = []

        async def consume(message: ReceivedMessage) -> None:
            seen.append(message.text)

        async with await connect(names, ANNA, means=means) as connection:
            producer = await connection.producer()
            await producer.send("S", "two pounds of tea", partition=0)
            reader = await connection.reader("S")
            assert (await take(reader, 1))[0].text == "two pounds of tea"
            await connection.consumer("G", "S", consume, GroupSettings(begin=FIRST))
            await until(lambda: seen)
        async with await connect(names, BERT, means=means) as connection:
            producer = await connection.producer()
            with pytest.raises(NotAllowedError):
                await producer.send("S", "milk")
            with pytest.raises(NotAllowedError):
                await connection.reader("S", timeout=5)
            with pytest.raises(NotAllowedError):
                await connection.consumer("H", "S", consume)
        for wrong in (Credentials("anna", "milk", "milk"), Credentials("anna", "milk", "tea")):
            async with await connect(names, wrong, means=means) as connection:
                with pytest.raises(NotAllowedError):
                    await connection.reader("S", timeout=5)
        async with await connect(names, means=means) as connection:
            with pytest.raises(NotAllowedError, match="names no user"):
                await connection.reader("S", timeout=5)

    run(main())
    assert "tea" not in repr(ANNA)


def test_a_stranger_is_not_trusted(broker: Secured, tmp_path: Path) -> None:
    stranger = certificates.Authority(tmp_path)

    async def main() -> None:
        names = f"127.0.0.1:{broker.port}"
        for tls in (TlsOptions(ca_file=stranger.certificate), None):
            async with await connect(names, ANNA, means=Means(tls=tls)) as connection:
                with pytest.raises(ConnectionFailedError):
                    await connection.reader("S", timeout=0.2)

    run(main())
