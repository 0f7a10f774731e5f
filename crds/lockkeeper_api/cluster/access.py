"""Access of users: who may connect, and their rights."""

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from lockkeeper_api.meta import LABEL, LABEL_PATTERN, ApiModel
from lockkeeper_api.policy import DestinationMatch
from lockkeeper_api.raw import ObjectName
from lockkeeper_api.rules import rules

Group = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\s,]+$")]
Groups = Annotated[list[Group], Field(max_length=32)]


NO_SECRET = "without secretName, a user's name has lower-case letters, digits and hyphens only"
_NO_SECRET_RULE = f"has(self.secretName) || self.name.matches('{LABEL_PATTERN}')"


class User(ApiModel):
    """A user that connects with a password."""

    model_config = ConfigDict(json_schema_extra=rules((_NO_SECRET_RULE, NO_SECRET)))

    name: str = Field(min_length=1, max_length=63, pattern=r"^[^\s:,]+$")
    """Cluster: user name, unique in the Broker."""
    secret_name: ObjectName | None = None
    """Cluster: Secret with the user's `password`; absent: the operator generates one in the Secret
    BROKER-user-NAME."""
    groups: Groups = Field(default=[])
    """Cluster: groups that the user belongs to, besides one of the user's own name."""

    @model_validator(mode="after")
    def _can_have_a_secret(self) -> "User":
        if self.secret_name is None and not re.fullmatch(LABEL, self.name):
            raise ValueError(NO_SECRET)
        return self


class Permission(DestinationMatch):
    """Rights of groups to destinations; all entries that match add up.

    `*` as a group is everybody.
    """

    read: Groups = Field(default=[])
    """Cluster: groups that may consume and browse."""
    write: Groups = Field(default=[])
    """Cluster: groups that may send."""
    admin: Groups = Field(default=[])
    """Cluster: groups that may create and remove."""


def _unique(users: list[User]) -> list[User]:
    """Return *users* if no two have the same name; ValueError otherwise."""
    _refuse_twice(user.name for user in users)
    return users


def _refuse_twice(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"two users have the same name, {name!r}")
        seen.add(name)


class Access(ApiModel):
    """Users and their permissions; local processes check them only with `--secrets`."""

    anonymous: bool = False
    """Cluster: clients without a user name may connect, and belong to the group `anonymous`."""
    users: Annotated[list[User], AfterValidator(_unique)] = Field(
        default=[],
        max_length=64,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
    )
    """Cluster: users that may connect. An empty list without `anonymous` means one user, `client`.
    The Secret BROKER-client has the credentials of the first user without a Secret of its own."""
    permissions: list[Permission] = Field(default=[], max_length=128)
    """Cluster: permissions of groups; empty: every user may do everything."""
