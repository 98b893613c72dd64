"""What only members of system:masters may ask for, whoever else is let in elsewhere: mockube's own paths.

They hand out the whole store, secrets included, and replace it.
"""

from collections.abc import Sequence
from typing import Final

from apiserver.authz.attributes import Attributes
from apiserver.authz.chain import Decision, Rule, Verdict
from apiserver.rest.call import MASTERS, User

PATHS: Final = "/mockube/"


class Reserved:
    async def decide(self, attributes: Attributes, /) -> Verdict:
        if not attributes.path.startswith(PATHS) or MASTERS in attributes.user.groups:
            return Decision.NO_OPINION, ""
        return Decision.DENY, f"only members of {MASTERS} may"

    async def rules(self, _user: User, _namespace: str, /) -> tuple[Sequence[Rule], Sequence[Rule]]:
        """It allows nothing."""
        return [], []
