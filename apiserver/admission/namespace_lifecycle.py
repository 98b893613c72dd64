"""NamespaceLifecycle: nothing is created where there is no namespace, or in one that is ending."""

from apimachinery import status
from apimachinery.groups import GroupResource
from apimachinery.status import Cause
from apiserver.rest.attributes import Attributes, Operation
from apiserver.rest.backend import Backend

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
NAMESPACES = GroupResource("", "namespaces")
_ALLOWED_WHILE_ENDING = frozenset({GroupResource("authorization.k8s.io", "localsubjectaccessreviews")})


class NamespaceLifecycle:
    operations = frozenset({Operation.CREATE, Operation.DELETE})

    async def validate(self, backend: Backend, attributes: Attributes) -> None:
        resource = attributes.resource
        if attributes.operation is Operation.DELETE:
            if resource.group_resource == NAMESPACES and attributes.name in IMMORTAL:
                raise status.forbidden(NAMESPACES, attributes.name, "this namespace may not be deleted")
            return
        if not resource.namespaced or resource.group_resource in _ALLOWED_WHILE_ENDING:
            return
        await self._check(backend, attributes)

    async def _check(self, backend: Backend, attributes: Attributes) -> None:
        name = attributes.namespace
        stored = await backend.find(backend.namespaces, "", name)
        if stored is None:
            raise status.not_found(NAMESPACES, name)
        if b'"phase":"Terminating"' in stored.value and stored.tree()["status"]["phase"] == "Terminating":
            cause = Cause(
                reason="NamespaceTerminating",
                message=f"namespace {name} is being terminated",
                field="metadata.namespace",
            )
            problem = f"unable to create new content in namespace {name} because it is being terminated"
            raise status.forbidden(attributes.resource.group_resource, attributes.name, problem, [cause])
