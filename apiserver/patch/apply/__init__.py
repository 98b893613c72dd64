"""Server-side apply: the ownership of fields by managers, and the merging of applied configurations.

A module belongs here if it works on sets of fields, on objects by the merge rules of their types, or on the managers of
fields. The semantics are those of structured-merge-diff, which kube-apiserver uses.
"""

from .conflicts import Conflicts, FieldConflict
from .field_manager import FieldManager, ObjectTypeError
from .managers import UnconvertibleVersion, VersionConverter

__all__ = [
    "Conflicts",
    "FieldConflict",
    "FieldManager",
    "ObjectTypeError",
    "UnconvertibleVersion",
    "VersionConverter",
]
