"""CSIStorageCapacity. It has no columns of its own."""

from collections.abc import Iterable, Iterator
from typing import Final

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import checks, validation
from mockube.apiserver.kinds.common.node_labels import selector_warnings
from mockube.apiserver.kinds.common.resource_names import check_not_negative
from mockube.apiserver.kinds.common.selectors import check_selector
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.common.warnings import on_create_and_update
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import Strategy

_SUBDOMAIN: Final = checks.report(names.check_dns1123_subdomain)


_CREATE: Final = validation.from_root(
    checks.pointer("nodeTopology", check_selector),
    checks.field("storageClassName", _SUBDOMAIN, absent=""),
    checks.pointer("capacity", check_not_negative),
)


def _check_same_topology(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    """Refuse a change of the topology. An empty one matches all nodes, a missing one none."""
    topology, old_topology = new.get("nodeTopology"), old.get("nodeTopology")
    if (topology is None) == (old_topology is None) and checks.is_same(topology, old_topology):
        return ()
    return (errors.invalid(ROOT.child("nodeTopology"), topology, checks.IMMUTABLE),)


def _warn(capacity: ReadOnlyTree) -> Iterator[str]:
    return selector_warnings(capacity.get("nodeTopology"), ROOT.child("nodeTopology"))


KIND: Final = Kind(
    resource=Resource(
        group="storage.k8s.io", version="v1", name="csistoragecapacities", kind="CSIStorageCapacity"
    ),
    strategy=Strategy(unconditional_update=False),
    validation=Validation(
        create=_CREATE,
        update=validation.in_order(
            validation.as_created(_CREATE),
            _check_same_topology,
            validation.immutable_fields("storageClassName", absent=""),
        ),
    ),
    warnings=on_create_and_update(_warn),
)
