"""Streams in resources: a Destination of kind Stream, and what a Broker allows for all."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.broker.streams.settings import StreamSettings, StreamsSettings
from lockkeeper.server.conversion import converted
from lockkeeper_api import BrokerSpec, Destination
from lockkeeper_api.streams import Stream, Streams


def destination(**spec: Any) -> Destination:
    """Return a Destination."""
    return Destination.model_validate(
        {
            "apiVersion": "lockkeeper.dev/v1alpha1",
            "kind": "Destination",
            "metadata": {"name": "orders"},
            "spec": {"brokerRef": {"name": "shop"}, **spec},
        }
    )


def test_defaults_are_those_of_the_core() -> None:
    assert converted(Stream(), StreamSettings) == StreamSettings()
    assert converted(Streams(), StreamsSettings) == StreamsSettings()
    assert converted(BrokerSpec(), BrokerSettings).streams == StreamsSettings()


def test_a_stream_is_declared() -> None:
    found = destination(
        kind="Stream",
        stream={"partitions": 8, "retention": {"time": "168h", "bytes": "10Gi"}, "ordered": True},
    )
    assert found.spec.stream is not None
    settings = converted(found.spec.stream, StreamSettings)
    assert (settings.partitions, settings.ordered) == (8, True)
    assert settings.retention.time == timedelta(days=7) // timedelta(milliseconds=1)
    assert (settings.retention.bytes, settings.retention.messages) == (10 << 30, 0)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"kind": "Stream", "policy": {}}, "policy is for queues and topics"),
        ({"kind": "Queue", "stream": {}}, "stream is for a Destination of kind Stream"),
        ({"kind": "Stream", "stream": {"partitions": 0}}, "partitions"),
        ({"kind": "Stream", "stream": {"retention": {"bytes": "1Ki"}}}, "expected 1Mi to 64Ti"),
    ],
)
def test_what_makes_no_sense_is_refused(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        destination(**spec)
