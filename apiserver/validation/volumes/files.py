"""Keys and fields that become files in a volume."""

from collections.abc import Iterator
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.field_references import check_field_of_volume, check_resource_of_volume
from apiserver.validation.file_paths import check_not_reserved
from apiserver.validation.rules import Tree, each, every, field, must, pointer, required

check_mode: Final = must(
    lambda mode: 0 <= mode <= 0o777, "must be a number between 0 and 0777 (octal), both inclusive"
)

check_key_to_path: Final = every(
    required("key"),
    required("path", check_not_reserved),
    pointer("mode", check_mode),
)

keys_and_mode: Final = every(pointer("defaultMode", check_mode), field("items", each(check_key_to_path)))
"""What ConfigMaps and Secrets have in common as volumes."""


def _check_reference(file: Tree, path: Path) -> Iterator[FieldError]:
    of_field, of_resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if of_field is not None:
        yield from check_field_of_volume(of_field, path.child("fieldRef"))
        if of_resource is not None:
            problem = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield errors.invalid(path, "resource", problem)
    elif of_resource is not None:
        yield from check_resource_of_volume(of_resource, path.child("resourceFieldRef"))
    else:
        yield errors.required(path, "one of fieldRef and resourceFieldRef is required")


check_downward_file: Final = every(
    required("path", check_not_reserved), _check_reference, pointer("mode", check_mode)
)


def check_downward(source: Tree, path: Path) -> Iterator[FieldError]:
    """A `downwardAPI` volume, whose files' errors upstream tells of without their places."""
    yield from pointer("defaultMode", check_mode)(source, path)
    for file in source.get("items", ()):
        yield from check_downward_file(file, path)
