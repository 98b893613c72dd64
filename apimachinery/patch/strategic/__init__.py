"""Strategic merge patches: JSON merge patches that know from the type which lists are merged, and by which key.

A module belongs here if it carries out such a patch or makes one from two objects. The directives inside a patch are
`$patch`, `$retainKeys`, `$setElementOrder/LIST` and `$deleteFromPrimitiveList/LIST`.
"""

from mockube.apimachinery.patch.strategic.create import create_two_way
from mockube.apimachinery.patch.strategic.merge import apply, as_merged

__all__ = ["apply", "as_merged", "create_two_way"]
