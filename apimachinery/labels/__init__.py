"""Label selectors: parsed from text or from an object, printed canonically, and compiled to match fast.

A module belongs here if it implements the meaning of label selectors. Fields have their own, simpler language in
`mockube.apimachinery.fields`.
"""

from mockube.apimachinery.labels.parser import parse
from mockube.apimachinery.labels.selector import (
    EVERYTHING,
    NOTHING,
    Operator,
    Requirement,
    Selector,
    SelectorError,
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
    "from_label_selector",
    "from_set",
    "parse",
    "require",
    "selector_text",
]
