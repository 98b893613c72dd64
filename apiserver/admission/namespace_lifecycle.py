"""NamespaceLifecycle: nothing is created in a missing or terminating namespace, and system namespaces are not deleted."""

from mockube.apimachinery import status, wellknown
from mockube.apimachinery.groups import NAMESPACES, GroupResource
from mockube.apimachinery.names import check_path_segment_name
from mockube.apimachinery.schema import minors
from mockube.apimachinery.status import Cause
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation

from .plugin import Plugin, forbidden

IMMORTAL_NAMESPACES = frozenset(
    {wellknown.NAMESPACE_DEFAULT, wellknown.NAMESPACE_SYSTEM, wellknown.NAMESPACE_PUBLIC}
)
_UPDATED_SINCE = "1.37"
"""The first minor that allows updates of objects whose namespace does not exist any more."""
_ALLOWED_WHILE_ENDING = frozenset({GroupResource("authorization.k8s.io", "localsubjectaccessreviews")})


class NamespaceLifecycle(Plugin):
    operations = frozenset({Operation.CREATE, Operation.DELETE})

    def __init__(self, minor: str = minors.NEWEST) -> None:
        if minors.is_before(minor, _UPDATED_SINCE):
            self.operations = frozenset({Operation.CREATE, Operation.UPDATE, Operation.DELETE})

    async def mutate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        resource = attributes.resource
        if attributes.operation is Operation.DELETE:
            if resource.group_resource == NAMESPACES and attributes.name in IMMORTAL_NAMESPACES:
                raise forbidden(attributes, "this namespace may not be deleted")
        elif (
            resource.namespaced
            and attributes.namespace  # validation refuses an empty one
            and resource.group_resource not in _ALLOWED_WHILE_ENDING
        ):
            _check(backend, attributes)


def _check(backend: Backend, attributes: AdmissionAttributes) -> None:
    name = attributes.namespace
    stored = backend.find_cached(NAMESPACES, "", name)
    if stored is None:
        # kube-apiserver reads the namespace with its client, which refuses a name that is no segment of a path.
        if problems := check_path_segment_name(name):
            raise status.internal_error(f'invalid resource name "{name}": [{" ".join(problems)}]')
        raise status.not_found(NAMESPACES, name)
    if attributes.operation is Operation.UPDATE:
        return
    if (stored.shared_tree().get("status") or {}).get("phase") == "Terminating":
        cause = Cause(
            reason=wellknown.CAUSE_NAMESPACE_TERMINATING,
            message=f"namespace {name} is being terminated",
            field="metadata.namespace",
        )
        problem = f"unable to create new content in namespace {name} because it is being terminated"
        raise forbidden(attributes, problem, [cause])
