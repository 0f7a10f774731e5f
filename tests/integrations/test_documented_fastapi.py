"""The page about FastAPI: its application runs as it stands; FastAPI is installed apart."""

import re
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from fastapi.testclient import TestClient

from lockkeeper.client import connect
from lockkeeper.testing.in_process import InProcessBroker

pytestmark = pytest.mark.thorough
PAGE = (Path(__file__).parents[2] / "docs" / "fastapi.md").read_text("utf-8")
SOON = 20.0


def test_the_application_sends_orders_and_hears_of_payments(
    lockkeeper_broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKER_URL", f"failover:({lockkeeper_broker.url})?maxReconnectDelay=20")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    shop: dict[str, Any] = {"__name__": "shop"}
    exec(code, shop)
    with TestClient(shop["app"]) as client, connect(lockkeeper_broker.url) as connection:
        answer = client.post("/orders/7")
        assert answer.status_code == 202
        message = connection.session().consumer("ORDERS").receive(timeout=SOON)
        assert message is not None
        assert (message.body, message.message_id) == ("7", answer.json()["id"])
        connection.session().producer("PAYMENTS").send("7")
        deadline = time.monotonic() + SOON
        while not client.get("/payments").json() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert client.get("/payments").json() == ["7"]
        lockkeeper_broker.cut()
        assert client.post("/orders/8").status_code == 202
