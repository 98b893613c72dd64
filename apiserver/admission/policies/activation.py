"""What the expressions of policies see: the object, the request, its namespace, and the rights of who asks."""

from collections.abc import Callable
from typing import Any, Final

from mockube.apimachinery.tree import Tree
from mockube.apiserver.admission.policies.matching import NAMESPACES
from mockube.apiserver.authz.chain import Attributes as Access
from mockube.apiserver.authz.chain import Authorization, Decision
from mockube.apiserver.cel.libraries.authorizer import (
    Answer,
    Authorizer,
    AuthorizerValue,
    Question,
    ResourceCheck,
)
from mockube.apiserver.kinds.api_resource import SCALE
from mockube.apiserver.registry.attributes import Attributes, Operation
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.convert import from_stored
from mockube.apiserver.registry.subresources import scale
from mockube.apiserver.user import SERVICE_ACCOUNT, User

_OF_NAMESPACE: Final = (
    *(
        "name",
        "generateName",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
    ),
    *("deletionGracePeriodSeconds", "labels", "annotations", "finalizers"),
)
_OPTIONS: Final = {
    Operation.CREATE: ("CreateOptions", ("dryRun", "fieldManager", "fieldValidation")),
    Operation.UPDATE: ("UpdateOptions", ("dryRun", "fieldManager", "fieldValidation")),
    Operation.DELETE: ("DeleteOptions", ("dryRun", "gracePeriodSeconds", "propagationPolicy")),
}


def activation(backend: Backend, attributes: Attributes) -> dict[str, Any]:
    """The variables that every expression about a write has."""
    return {
        "object": _shown(backend, attributes, attributes.object),
        "oldObject": _shown(backend, attributes, attributes.old),
        "request": _request(attributes),
        "namespaceObject": _namespace(backend, attributes),
    }


def authorizers(authorization: Authorization, attributes: Attributes) -> dict[str, Any]:
    """The variables that answer questions about the rights of who asks."""
    answers = _answers(authorization, attributes.call.user)
    row = attributes.resource
    question = Question(
        group=row.group,
        resource=row.name,
        subresource=attributes.subresource,
        namespace=attributes.namespace,
        name=attributes.name,
    )
    return {
        "authorizer": AuthorizerValue(answers),
        "authorizer.requestResource": ResourceCheck(answers, question),
    }


def _answers(authorization: Authorization, user: User) -> Authorizer:
    def answer(question: Question) -> Answer:
        asking = user
        if question.service_account is not None:
            namespace, name = question.service_account
            groups = (SERVICE_ACCOUNT.rstrip(":") + "s", f"{SERVICE_ACCOUNT.rstrip(':')}s:{namespace}")
            asking = User(
                name=f"{SERVICE_ACCOUNT}{namespace}:{name}", groups=(*groups, "system:authenticated")
            )
        decision, reason = authorization.decide(
            Access(
                user=asking,
                verb=question.verb,
                path=question.path,
                group=question.group,
                version="" if question.path else "*",
                resource=question.resource,
                subresource=question.subresource,
                namespace=question.namespace,
                name=question.name,
                field_selector=question.field_selector,
                label_selector=question.label_selector,
            )
        )
        return Answer(decision is Decision.ALLOW, reason)

    return answer


def _shown(backend: Backend, attributes: Attributes, tree: Tree | None) -> Tree | None:
    """The object in the version in which it is written."""
    subresource, row = attributes.call.subresource, attributes.resource
    if tree is None:
        return None
    if subresource is not None and subresource.kind == SCALE.kind and tree.get("kind") != SCALE.kind:
        return scale.scale_view(row).show(tree)
    if subresource is not None and subresource.kind:
        return tree
    return tree if tree.get("apiVersion") == row.api_version else from_stored(backend, row, tree)


def _request(attributes: Attributes) -> Tree:
    row, subresource, call = attributes.resource, attributes.call.subresource, attributes.call
    group, version, kind = row.group, row.version, row.kind
    if subresource is not None and subresource.kind:
        (group, version), kind = subresource.group_version or row.group_version, subresource.kind
    kind_tree = {"group": group, "version": version, "kind": kind}
    resource = {"group": row.group, "version": row.version, "resource": row.name}
    user = {
        "username": call.user.name,
        "uid": call.user.uid,
        "groups": [*call.user.groups],
        "extra": {name: [*values] for name, values in call.user.extra.items()},
    }
    name = attributes.name or (attributes.object or {}).get("metadata", {}).get("name", "")
    namespace = name if attributes.target[:2] == ("", "namespaces") else attributes.namespace
    named = {
        "name": name,
        "namespace": namespace,
        "subResource": attributes.subresource,
        "requestSubResource": attributes.subresource,
    }
    return {
        "kind": kind_tree,
        "resource": resource,
        "requestKind": kind_tree,
        "requestResource": resource,
        "operation": attributes.operation.value,
        "userInfo": {name: value for name, value in user.items() if value},
        "dryRun": attributes.dry_run,
        "options": _options(attributes),
        **{name: value for name, value in named.items() if value},
    }


def _options(attributes: Attributes) -> Tree | None:
    if attributes.operation not in _OPTIONS:
        return None
    kind, fields = _OPTIONS[attributes.operation]
    made: Tree = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    for name in fields:
        value = attributes.call.parameter(name)
        if value:
            made[name] = _OPTION.get(name, str)(value)
    return made


_OPTION: Final[dict[str, Callable[[str], Any]]] = {
    "dryRun": lambda value: [value],
    "gracePeriodSeconds": lambda value: int(value) if value.lstrip("-").isdecimal() else value,
}


def _namespace(backend: Backend, attributes: Attributes) -> Tree | None:
    if not attributes.namespace or attributes.target[:2] == ("", "namespaces"):
        return None
    stored = backend.seen(NAMESPACES, "", attributes.namespace)
    if stored is None:
        return None
    tree = stored.tree()
    metadata = {name: value for name, value in tree["metadata"].items() if name in _OF_NAMESPACE}
    return {"metadata": metadata, "spec": tree.get("spec", {}), "status": tree.get("status", {})}
