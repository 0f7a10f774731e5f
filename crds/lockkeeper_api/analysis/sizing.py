"""Resources of the cluster that an analysis takes."""

from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Size, sizes
from lockkeeper_api.rules import rules
from lockkeeper_api.units import MEBIBYTE

OVERHEAD_SHARE = 0.4
"""Of the heap, for large heaps (Spark's own default for Python)."""
JAVA_OVERHEAD = 576 * MEBIBYTE
"""What Java takes beside its heap: 550 MiB were measured."""
PYTHON_OVERHEAD = 192 * MEBIBYTE
"""What a process of Python takes, as measured: the driver's own, and one for each core."""
EITHER = "expected instances or dynamicAllocation, not both"
_EITHER_RULE = "!(has(self.instances) && has(self.dynamicAllocation))"
ORDER = "expected min <= max"
_ORDER_RULE = "self.min <= self.max"


class SparkResources(ApiModel):
    """Processors and memory of one process of Spark."""

    cores: int = Field(default=1, ge=1, le=256)
    """Number of cores, and of tasks at a time."""
    memory: Annotated[Size, sizes("512Mi", "1Ti")] = 1024 * MEBIBYTE
    """Size of Java's heap."""
    memory_overhead: Annotated[Size, sizes("128Mi", "1Ti")] | None = None
    """Memory beside the heap, for Java and for Python; absent: 40 % of the heap, at least
    768Mi and 192Mi for each core."""

    @property
    def overhead(self) -> int:
        """Bytes beside the heap."""
        if self.memory_overhead is not None:
            return self.memory_overhead
        least = JAVA_OVERHEAD + PYTHON_OVERHEAD * (1 + self.cores)
        return max(least, int(self.memory * OVERHEAD_SHARE))


class DynamicAllocation(ApiModel):
    """A number of executors that follows the work."""

    model_config = ConfigDict(json_schema_extra=rules((_ORDER_RULE, ORDER)))

    min: int = Field(default=0, ge=0, le=1000)
    """Smallest number of executors."""
    max: int = Field(ge=1, le=1000)
    """Largest number of executors."""

    @model_validator(mode="after")
    def _is_in_order(self) -> "DynamicAllocation":
        if self.min > self.max:
            raise ValueError(ORDER)
        return self


class Executors(ApiModel):
    """Executors, which read the journal: a fixed number, or one that follows the work."""

    model_config = ConfigDict(json_schema_extra=rules((_EITHER_RULE, EITHER)))

    instances: int | None = Field(default=None, ge=1, le=1000)
    """Number of executors; absent: 2, or as dynamicAllocation says."""
    dynamic_allocation: DynamicAllocation | None = None
    """A number of executors that follows the work, within bounds."""
    resources: SparkResources = SparkResources()
    """Processors and memory of each executor."""

    @model_validator(mode="after")
    def _is_either(self) -> "Executors":
        if self.instances is not None and self.dynamic_allocation is not None:
            raise ValueError(EITHER)
        return self
