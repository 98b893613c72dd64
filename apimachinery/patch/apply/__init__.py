"""Server-side apply: which manager owns which field, and the object after a manager applied its configuration.

A module belongs here if it works on sets of fields, on objects by the way their type merges, or on the managers that
own fields. The meaning is that of structured-merge-diff, with which kube-apiserver does the same.
"""

from mockube.apimachinery.patch.apply.conflicts import Conflict, Conflicts
from mockube.apimachinery.patch.apply.field_manager import FieldManager, Untypable
from mockube.apimachinery.patch.apply.managers import Unconvertible, Versions

__all__ = ["Conflict", "Conflicts", "FieldManager", "Unconvertible", "Untypable", "Versions"]
