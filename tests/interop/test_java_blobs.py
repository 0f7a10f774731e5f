"""Blob messages go to the unmodified Java client and come from it, over a file server."""

from io import BytesIO
from typing import TYPE_CHECKING

import pytest
from file_server import file_server

from lockkeeper.client import Blob, connect

if TYPE_CHECKING:
    from brokers import RunningBroker
    from java_scenarios import JavaScenarios

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SCENARIO = "blobs-answered"


def test_blobs_are_read_and_uploaded_by_both_clients(
    broker: "RunningBroker", java_scenarios: "JavaScenarios"
) -> None:
    with file_server() as server:
        url = f"{broker.url}?jms.blobTransferPolicy.uploadUrl={server.url}"
        with connect(url) as connection:
            session = connection.session()
            blob = session.upload(BytesIO(b"from Python"), mime_type="video/mp4")
            session.producer(f"INTEROP.{SCENARIO}.asked").send(blob)
            result = java_scenarios.run(SCENARIO, f"{broker.url}#{server.url}")
            assert result["ok"], result["error"]
            consumer = session.consumer(f"INTEROP.{SCENARIO}.answered")
            uploaded, elsewhere = (consumer.receive(5) for _ in range(2))
            assert uploaded is not None and uploaded.blob is not None
            assert uploaded.blob.read() == b"from Java"
            assert uploaded.blob.url == f"{server.url}{uploaded.message_id}"
            assert (uploaded.blob.mime_type, uploaded.blob.deleted_by_broker) == (
                "application/octet-stream", True,
            )  # fmt: skip
            assert elsewhere is not None
            assert elsewhere.blob == Blob("https://example.org/a%20film.mp4")
