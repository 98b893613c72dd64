"""Strategic merge patches: JSON merge patches in which the type determines which lists are merged, and by which key.

A module belongs here if it applies such a patch or makes one from two objects. The directives inside a patch are
`$patch`, `$retainKeys`, `$setElementOrder/LIST` and `$deleteFromPrimitiveList/LIST`.
"""

from mockube.apimachinery.patch.strategic.create import create_two_way
from mockube.apimachinery.patch.strategic.merge import apply, as_merged

__all__ = ["apply", "as_merged", "create_two_way"]
