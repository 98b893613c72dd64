"""RuntimeClasses."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import Path
from apiserver.validation.internal import internal
from apiserver.validation.kind import Validation
from apiserver.validation.labels import check_labels
from apiserver.validation.objectmeta import SUBDOMAIN, with_any_finalizers
from apiserver.validation.objects import created, unchanged
from apiserver.validation.pods.leniency import STRICT
from apiserver.validation.pods.resources import check_requirements
from apiserver.validation.pods.surroundings import Surroundings
from apiserver.validation.pods.tolerations import check_tolerations
from apiserver.validation.rules import Tree, field, optional, pointer, required, valid

_NO_POD: Final = Surroundings(spec={}, metadata=None, volumes={}, claims=frozenset(), leniency=STRICT)


def _check_overhead(amounts: Tree, path: Path) -> Iterable[FieldError]:
    """What pods take besides their containers, as if they were limits of one."""
    return check_requirements({"limits": amounts}, path, _NO_POD)


def _check_tolerations(tolerations: Sequence[Tree], path: Path) -> Iterator[FieldError]:
    yield from check_tolerations(tolerations, path, compared=False)
    for index, toleration in enumerate(tolerations):
        if toleration in tolerations[:index]:
            yield errors.duplicate(path.index(index), internal("core.Toleration", toleration))


_CREATE: Final = created(
    required("handler", valid(names.check_dns1123_label)),
    pointer(
        "overhead",
        lambda overhead, path: _check_overhead(overhead.get("podFixed") or {}, path),
    ),
    pointer(
        "scheduling",
        field("nodeSelector", check_labels),
        optional("tolerations", _check_tolerations),
    ),
)

VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("node.k8s.io", "RuntimeClass"): Validation(
        name=with_any_finalizers(SUBDOMAIN), create=_CREATE, update=unchanged("handler")
    ),
}
