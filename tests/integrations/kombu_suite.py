"""kombu's own integration tests, over the broker that BROKER_URL names.

Run by `test_kombu_suite.py`; `t.integration.common` is in kombu's source distribution.
"""

# mypy: disable-error-code="misc, import-not-found"
import os
from collections.abc import Iterator

import kombu
import pytest
from t.integration.common import (
    BaseEventLoop,
    BaseExchangeTypes,
    BaseFailover,
    BaseMessage,
    BasePriority,
    BaseTimeToLive,
    BasicFunctionality,
)

import lockkeeper.integrations.kombu  # noqa: F401

URL = os.environ["BROKER_URL"]
NOBODY = "lockkeeper+openwire://127.0.0.1:1"


@pytest.fixture
def connection() -> Iterator[kombu.Connection]:
    with kombu.Connection(URL) as made:
        yield made


@pytest.fixture
def invalid_connection() -> kombu.Connection:
    return kombu.Connection(NOBODY)


@pytest.fixture
def failover_connection() -> kombu.Connection:
    return kombu.Connection(f"{NOBODY};{URL}")


class TestBasics(BasicFunctionality):
    pass


class TestExchangeTypes(BaseExchangeTypes):
    pass


class TestTimeToLive(BaseTimeToLive):
    pass


class TestPriority(BasePriority):
    pass


class TestMessage(BaseMessage):
    pass


class TestEventLoop(BaseEventLoop):
    pass


class TestFailover(BaseFailover):
    pass
