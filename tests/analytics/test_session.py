"""The session that reports are worked out in."""

import pytest

from lockkeeper_analytics.spark.session import suited

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ADAPTIVE = "spark.sql.adaptive.enabled"


def test_java_has_as_much_room_for_code_as_with_both_its_compilers(spark):
    pools = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    room = sum(pool.getUsage().getMax() for pool in pools if "Code" in pool.getName())
    assert room == 240 * 1024 * 1024


@pytest.mark.parametrize("size", [0, 2**30])
def test_reports_are_planned_once_and_the_session_is_then_as_before(spark, size):
    before = spark.conf.get(ADAPTIVE)
    spark.conf.set(ADAPTIVE, "true")
    try:
        with suited(spark, size):
            assert spark.conf.get(ADAPTIVE) == "false"
        assert spark.conf.get(ADAPTIVE) == "true"
    finally:
        spark.conf.set(ADAPTIVE, before)
