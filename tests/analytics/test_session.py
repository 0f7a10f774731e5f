"""The session that reports are worked out in."""

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_java_has_as_much_room_for_code_as_with_both_its_compilers(spark):
    pools = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    room = sum(pool.getUsage().getMax() for pool in pools if "Code" in pool.getName())
    assert room == 240 * 1024 * 1024
