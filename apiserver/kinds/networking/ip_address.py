"""IPAddress: an address, and a reference to the object that has it."""

from collections.abc import Iterable
from datetime import datetime
from ipaddress import ip_address
from typing import Any, Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import ages, checks
from mockube.apiserver.kinds.common.addresses import check_strict_ip
from mockube.apiserver.kinds.common.cells import part, text
from mockube.apiserver.kinds.common.declared import DeclaredRules, immutable, required
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.objectmeta import NameRule
from mockube.apiserver.kinds.common.validation import CREATE_AND_CHANGE, Validation, from_root, get_struct
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import Strategy
from mockube.apiserver.wire.table import NAME, Column, Printer


def _check_name(name: str) -> list[str]:
    """Check that the name is an IP address in canonical form."""
    problems = [error.detail for error in check_strict_ip(name, ROOT)]
    if not problems and str(ip_address(name)) != name:
        return [f'must be in canonical form ("{ip_address(name)}")']
    return problems


_SEGMENT: Final = checks.report(names.check_path_segment_name)

_PARENT: Final = checks.all_of(
    checks.optional("group", checks.report(names.check_dns1123_subdomain)),
    checks.require("resource", _SEGMENT),
    checks.require("name", _SEGMENT),
    checks.optional("namespace", _SEGMENT),
)


def _check_parent(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check the reference. For an empty one, upstream reports the missing fields."""
    parent, path = spec.get("parentRef"), path.child("parentRef")
    return (errors.required(path),) if parent is None else _PARENT(parent, path)


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    parent, path = get_struct(new, "spec").get("parentRef"), ROOT.child("spec", "parentRef")
    if parent == get_struct(old, "spec").get("parentRef"):
        return ()
    value = None if parent is None else internal("networking.ParentReference", parent)
    return (errors.invalid(path, value, checks.IMMUTABLE),)


def _cells(tree: Tree, now: datetime) -> list[Any]:
    # Upstream prints one cell more than it has columns, which kubectl ignores.
    return [meta.name(tree), _parent(part(tree, "spec", "parentRef")), ages.age(tree, now)]


def _parent(reference: Any) -> str:
    if reference is None:
        return "<none>"
    resource = GroupResource(text(reference, "group"), text(reference, "resource"))
    namespace, name = text(reference, "namespace"), text(reference, "name")
    return "/".join(filter(None, (str(resource).lower(), namespace, name)))


KIND: Final = Kind(
    resource=Resource(
        group="networking.k8s.io",
        version="v1",
        name="ipaddresses",
        kind="IPAddress",
        namespaced=False,
        short_names=("ip",),
    ),
    strategy=Strategy(generates_suffixes=False),
    validation=Validation(
        repeated_checks=CREATE_AND_CHANGE,
        name=NameRule(_check_name, _check_name),
        create=from_root(checks.field("spec", _check_parent, absent={})),
        update=_update,
        declared=DeclaredRules(
            required("spec.parentRef"),
            immutable("spec.parentRef"),
            required("spec.parentRef.resource"),
            required("spec.parentRef.name"),
        ),
    ),
    printer=Printer(columns=(NAME, Column(name="ParentRef")), cells=_cells),
)
