"""Admin access to devices in use is allowed only in namespaces with a label.

Upstream checks this in the storage of claims, after the mutating plugins. So it cannot be disabled.
"""

from collections.abc import Iterable
from typing import Any, Final

from mockube.apimachinery import errors, meta, status
from mockube.apimachinery.groups import NAMESPACES
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import Tree
from mockube.apiserver.admission.plugin import WRITE, Plugin, wait_for_earlier_writes
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation

_GROUP: Final = "resource.k8s.io"
_CLAIMS, _TEMPLATES = "resourceclaims", "resourceclaimtemplates"
_LABEL: Final = "resource.kubernetes.io/admin-access"
_PROBLEM: Final = f"admin access to devices requires the `{_LABEL}: true` label on the containing namespace"


class DeviceAdminAccess(Plugin):
    operations = WRITE
    targets = frozenset({(_GROUP, _CLAIMS, ""), (_GROUP, _CLAIMS, "status"), (_GROUP, _TEMPLATES, "")})

    async def mutate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        """Reject access that the namespace does not allow; the object is not changed."""
        tree = attributes.object
        assert tree is not None
        path = _admin_access_path(attributes, tree)
        if path is None:
            return
        await wait_for_earlier_writes(registry, attributes)
        namespace = registry.find_cached(NAMESPACES, "", attributes.namespace)
        if namespace is not None and meta.labels(namespace.tree()).get(_LABEL) == "true":
            return
        resource, wrong = attributes.resource, [errors.forbidden(path, _PROBLEM)]
        if attributes.operation is Operation.CREATE:
            wrong += registry.scheme.rules.check_create(resource, tree)
        raise status.invalid(resource.group_kind, meta.name(tree), wrong)


def _admin_access_path(attributes: AdmissionAttributes, tree: Tree) -> Path | None:
    """Return the path of admin access in a new spec or a first allocation; None if there is none."""
    if attributes.operation is Operation.CREATE:
        spec = tree.get("spec") or {}
        spec = spec if attributes.resource.name == _CLAIMS else spec.get("spec") or {}
        requests = (spec.get("devices") or {}).get("requests") or ()
        first = _first_with_access(request.get("exactly") or {} for request in requests)
        return None if first is None else ROOT.child("spec", "devices", "requests").index(first).child(_ADMIN)
    if attributes.subresource != "status" or _first_with_access(_results(attributes.old or {})) is not None:
        return None
    first = _first_with_access(_results(tree))
    results_path = ROOT.child("status", "allocation", "devices", "results")
    return None if first is None else results_path.index(first).child(_ADMIN)


_ADMIN: Final = "adminAccess"


def _results(claim: Tree) -> list[Tree]:
    allocation: Any = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def _first_with_access(members: Iterable[Tree]) -> int | None:
    return next((index for index, member in enumerate(members) if member.get(_ADMIN)), None)
