"""Label selectors: read from text or from an object, printed canonically, and compiled to match fast.

A module belongs here if it knows what a selector of labels means. Fields have their own, simpler language in
`apimachinery.fields`.
"""

from apimachinery.labels.parser import parse
from apimachinery.labels.requirement import Operator, Requirement, SelectorError, require
from apimachinery.labels.selector import EVERYTHING, NOTHING, Selector, from_label_selector, from_set

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
]
