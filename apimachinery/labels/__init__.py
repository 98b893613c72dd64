"""Label selectors: parsed from a text or an object, printed canonically, and compiled into fast predicates.

A module belongs here if it implements the semantics of label selectors. Field selectors have a simpler syntax, in
`mockube.apiserver.fields`.
"""

from .parser import parse
from .selector import (
    EVERYTHING,
    NOTHING,
    Operator,
    Requirement,
    Selector,
    SelectorError,
    check_requirement,
    from_label_selector,
    from_set,
    require,
    selector_text,
)

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "Operator",
    "Requirement",
    "Selector",
    "SelectorError",
    "check_requirement",
    "from_label_selector",
    "from_set",
    "parse",
    "require",
    "selector_text",
]
