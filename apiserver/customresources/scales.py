"""Check at every write that the fields of the subresource `scale` are numbers and strings."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apiserver.kinds.api_resource import Replicas
from mockube.apiserver.schema.nested_values import AccessorError, nested_value

_MAX_INT32: Final = 2**31 - 1


class ScalePaths(NamedTuple):
    """The paths of the fields of a Scale in a definition's objects."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...]

    @classmethod
    def of(cls, replicas: Replicas) -> "ScalePaths":
        return cls(tuple(replicas.spec_path), tuple(replicas.status_path), tuple(replicas.selector))

    def check(self, tree: Mapping[str, Any], *, only_status: bool) -> Iterator[FieldError]:
        if not only_status:
            yield from _check_number(tree, self.spec_replicas)
        yield from _check_number(tree, self.status_replicas)
        if self.selector:
            try:
                nested_value(tree, self.selector, str)
            except AccessorError as error:
                yield errors.invalid(_field(self.selector), "", str(error))


def _check_number(tree: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[FieldError]:
    try:
        number = nested_value(tree, path, int) or 0
    except AccessorError as error:
        yield errors.invalid(_field(path), 0, str(error))
        return
    if number < 0:
        yield errors.invalid(_field(path), number, "should be a non-negative integer")
    elif number > _MAX_INT32:
        yield errors.invalid(_field(path), number, f"should be less than or equal to {_MAX_INT32}")


def _field(path: tuple[str, ...]) -> Any:
    return ROOT.child("." + ".".join(path))
