"""Strategic merge patches: JSON merge patches in which the type determines which lists are merged, and by which key.

A module belongs here if it applies such a patch. The directives inside a patch are
`$patch`, `$retainKeys`, `$setElementOrder/LIST` and `$deleteFromPrimitiveList/LIST`.
"""

from .merge import apply, patch_after_merge

__all__ = ["apply", "patch_after_merge"]
