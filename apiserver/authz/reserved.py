"""What AlwaysAllow leaves to members of system:masters: mockube's own paths, and the way into their group.

The paths hand out the whole store, Secrets included, and replace it. An authorizer with rules of its own, such as RBAC,
needs none of this: there the paths are non-resource URLs like others, and impersonation is a verb like others.
"""

from collections.abc import Sequence
from typing import Final

from mockube.apiserver.authz.chain import Attributes, Decision, Rule, Verdict
from mockube.apiserver.user import MASTERS, User

PATHS: Final = "/mockube/"


class Reserved:
    """Denies it to all others, and has no opinion about anything else."""

    async def decide(self, attributes: Attributes, /) -> Verdict:
        if MASTERS in attributes.user.groups or not _is_reserved(attributes):
            return Decision.NO_OPINION, ""
        return Decision.DENY, f"only members of {MASTERS} may"

    async def rules(self, _user: User, _namespace: str, /) -> tuple[Sequence[Rule], Sequence[Rule]]:
        """Return no rules: nothing is allowed by it."""
        return [], []


def _is_reserved(attributes: Attributes) -> bool:
    if attributes.is_resource:
        return (
            attributes.resource == "groups"
            and attributes.name == MASTERS
            and attributes.verb.partition(":")[0] == "impersonate"
        )
    return f"{attributes.path}/".startswith(PATHS)
