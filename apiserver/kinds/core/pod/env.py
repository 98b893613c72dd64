"""Validation of the environment variables of a container."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.field_references import (
    check_field_of_variable,
    check_resource_of_variable,
)
from mockube.apiserver.kinds.common.objectmeta import SUBDOMAIN
from mockube.apiserver.kinds.core.volumes.projected import check_no_backsteps

_NAME: Final = checks.report(names.check_relaxed_env_var_name)

_KEY: Final = checks.all_of(
    checks.field("name", checks.report(names.check_dns1123_subdomain), absent=""),
    checks.require("key", checks.report(names.check_config_map_key)),
)
_FILE_KEY: Final = checks.all_of(
    checks.require("key", _NAME),
    checks.require("volumeName", checks.report(names.check_dns1123_label)),
    checks.require("path", check_no_backsteps),
)
_SOURCES: Final[Mapping[str, Check]] = {
    "fieldRef": check_field_of_variable,
    "resourceFieldRef": check_resource_of_variable,
    "configMapKeyRef": _KEY,
    "secretKeyRef": _KEY,
    "fileKeyRef": _FILE_KEY,
}

_TOO_MANY: Final = "may not have more than one field specified at a time"


def _check_value_from(variable: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    source = variable.get("valueFrom")
    return () if source is None else _check_source(variable, source, path.child("valueFrom"))


def _check_source(variable: ReadOnlyTree, source: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    present = [name for name in _SOURCES if source.get(name) is not None]
    for name in present:
        yield from _SOURCES[name](source[name], path.child(name))
    if not present:
        problem = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield errors.invalid(path, "", problem)
    elif variable.get("value"):
        yield errors.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(present) > 1:
        yield errors.invalid(path, "", _TOO_MANY)


check_env: Final = checks.each_item(checks.require("name", _NAME), _check_value_from)


# --- many variables of one source

_NAMED: Final = checks.require("name", checks.report(SUBDOMAIN.beginning))
_FROM: Final = ("configMapRef", "secretRef")


def check_env_from(sources: Iterable[ReadOnlyTree] | None, path: Path) -> Iterator[FieldError]:
    """Check the sources of variables. As upstream, an error about the number of references has the path of the list."""
    for index, source in enumerate(sources or ()):
        yield from checks.optional("prefix", _NAME)(source, path.index(index))
        present = [name for name in _FROM if source.get(name) is not None]
        for name in present:
            yield from _NAMED(source[name], path.index(index).child(name))
        if not present:
            yield errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(present) > 1:
            yield errors.invalid(path, "", _TOO_MANY)


# --- files


def check_file_volumes(
    volumes: Mapping[str, ReadOnlyTree], variables: Iterable[ReadOnlyTree], path: Path
) -> Iterator[FieldError]:
    """Check that variables from files refer to volumes of type emptyDir."""
    for index, variable in enumerate(variables):
        source = variable.get("valueFrom")
        if source is None or (reference := source.get("fileKeyRef")) is None:
            continue
        name = reference.get("volumeName", "")
        field_path = path.index(index).child("valueFrom", "fileKeyRef", "volumeName")
        if name not in volumes:
            yield errors.not_found(field_path, name)
        elif volumes[name].get("emptyDir") is None:
            yield errors.invalid(field_path, name, "referenced volume must be of type emptyDir")
