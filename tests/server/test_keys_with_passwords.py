"""A key that needs a password is an error: nobody is asked for one at the terminal meanwhile."""

import subprocess
from pathlib import Path

import pytest

from lockkeeper.client import BrokerUrlError
from lockkeeper.client.tls import TlsOptions
from lockkeeper.server.networks.conversion import encryption
from lockkeeper_api.network_connectors import NetworkConnector


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    path = tmp_path / "both.pem"
    command = f"openssl req -x509 -newkey rsa:2048 -passout pass:tea -subj /CN=a -keyout {path}"
    done = subprocess.run(command.split(), check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + done.stdout)
    return path


def test_a_bridge_does_not_wait_for_somebody_to_type_one(pem: Path) -> None:
    said = {"uri": "static:(ssl://far:1)", "tls": {"certificateFile": str(pem)}}
    with pytest.raises(OSError, match=r"tls\.certificateFile: .*the key needs a password"):
        encryption(NetworkConnector.model_validate(said))


def test_nor_does_a_client(pem: Path) -> None:
    with pytest.raises(BrokerUrlError, match="the key needs a password"):
        TlsOptions(certificate_file=pem).context()
