"""Storage of the journal in a cluster: a claim of the Broker's own, or one that there is."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from lockkeeper_api.changes import OPERATOR
from lockkeeper_api.meta import ApiModel
from lockkeeper_api.quantities import Size, sizes
from lockkeeper_api.raw import ObjectName, Strings
from lockkeeper_api.rules import rules

AccessMode = Literal["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"]
ALIEN_SETTINGS = "existingClaim is used as it is: leave out className, accessModes, labels"
_ALIEN_RULE = (
    "!has(self.existingClaim) || "
    "!(has(self.className) || has(self.accessModes) || has(self.labels))"
)
_SAME_CLAIM_RULE = (
    "has(self.existingClaim) == has(oldSelf.existingClaim) && "
    "has(self.className) == has(oldSelf.className)"
)
_SAME_CLAIM = "a Broker cannot move from one claim to another"
_GROWTH_RULE = (
    "type(self) == int && type(oldSelf) == int ? self >= oldSelf : "
    "type(self) != string || type(oldSelf) != string || "
    "quantity(self).compareTo(quantity(oldSelf)) >= 0"
)
_FIXED = rules(("self == oldSelf", "is immutable"))


class Storage(ApiModel):
    """The volume that all replicas share."""

    model_config = ConfigDict(
        json_schema_extra=rules((_ALIEN_RULE, ALIEN_SETTINGS), (_SAME_CLAIM_RULE, _SAME_CLAIM))
    )

    existing_claim: ObjectName | None = Field(default=None, json_schema_extra=_FIXED)
    """Cluster: an existing PersistentVolumeClaim, such as that of an ActiveMQ broker."""
    path: str = Field(default="", max_length=255, pattern=r"^([A-Za-z0-9_-][A-Za-z0-9._-]*(/|$))*$")
    """Cluster: directory of the journal within the volume, such as `data/kahadb`."""
    size: Annotated[Size, sizes("64Mi", "1Pi"), OPERATOR] = Field(
        default=10 << 30,
        json_schema_extra=rules((_GROWTH_RULE, "a volume cannot shrink")),
    )
    """Cluster: size of the claim; it may grow while brokers run, where its StorageClass allows
    it."""
    class_name: ObjectName | None = Field(default=None, json_schema_extra=_FIXED)
    """Cluster: StorageClass; absent: the cluster's default."""
    access_modes: list[AccessMode] | None = Field(default=None, min_length=1, max_length=2)
    """Cluster: access modes of the claim; absent: ReadWriteOnce for one replica, ReadWriteMany for
    several."""
    labels: Annotated[Strings | None, OPERATOR] = None
    """Cluster: labels of the claim, for backups and the like."""
    deletion_policy: Annotated[Literal["Retain", "Delete"], OPERATOR] = "Retain"
    """Cluster: treatment of the claim when the Broker is deleted. Retain: a new Broker of the same
    name finds the journal again."""

    @model_validator(mode="after")
    def _uses_one_claim(self) -> "Storage":
        own = (self.class_name, self.access_modes, self.labels)
        if self.existing_claim is not None and any(value is not None for value in own):
            raise ValueError(ALIEN_SETTINGS)
        return self
