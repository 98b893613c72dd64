"""What a rule finds. Pure."""

from msgspec import Struct

from mockube.lint.findings import Outcome
from mockube.lint.objects import LintObject


class Problem(Struct, frozen=True, kw_only=True):
    """A mistake, and the field of the object that has to be changed."""

    item: LintObject
    field: str
    message: str
    outcome: Outcome | None = None
    """How severe it is; None if it is as severe as the rule says."""
