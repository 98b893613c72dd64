"""The variables of policies' expressions: the object, the request, its namespace, and the requester's permissions."""

from typing import Any, Final

from mockube.apimachinery.cel.libraries.authorizer import (
    AccessCheck,
    AccessDecision,
    AuthorizerValue,
    ExpressionAuthorizer,
    ResourceCheck,
)
from mockube.apimachinery.groups import NAMESPACES
from mockube.apimachinery.tree import Tree
from mockube.apiserver.admission.admission_request import admission_request
from mockube.apiserver.admission.versions import to_version, without_system_fields
from mockube.apiserver.authz.chain import Attributes, Authorization, Decision
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes
from mockube.apiserver.user import SERVICE_ACCOUNT, User

_NAMESPACE_METADATA: Final = (
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


def activation(
    registry: Registry, attributes: AdmissionAttributes, row: Resource, *, mutating: bool
) -> dict[str, Any]:
    """Return the variables of all expressions about a write, with the object in the version of a row."""
    new = to_version(registry, attributes, row, attributes.object)
    return {
        "object": without_system_fields(attributes, new) if mutating else new,
        "oldObject": to_version(registry, attributes, row, attributes.old),
        "request": admission_request(attributes, row, row),
        "namespaceObject": _namespace(registry, attributes),
    }


def authorizers(authorization: Authorization, attributes: AdmissionAttributes) -> dict[str, Any]:
    """Return the variables that check the requester's permissions."""
    answers = _answers(authorization, attributes.context.user)
    row = attributes.resource
    question = AccessCheck(
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


def _answers(authorization: Authorization, user: User) -> ExpressionAuthorizer:
    def answer(question: AccessCheck) -> AccessDecision:
        subject = user
        if question.service_account is not None:
            namespace, name = question.service_account
            groups = (SERVICE_ACCOUNT.rstrip(":") + "s", f"{SERVICE_ACCOUNT.rstrip(':')}s:{namespace}")
            subject = User(
                name=f"{SERVICE_ACCOUNT}{namespace}:{name}", groups=(*groups, "system:authenticated")
            )
        decision, reason = authorization.decide(
            Attributes(
                user=subject,
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
        return AccessDecision(decision is Decision.ALLOW, reason)

    return answer


def _namespace(registry: Registry, attributes: AdmissionAttributes) -> Tree | None:
    if not attributes.namespace or attributes.resource.group_resource == NAMESPACES:
        return None
    stored = registry.find_cached(NAMESPACES, "", attributes.namespace)
    if stored is None:
        return None
    tree = stored.tree()
    metadata = {name: value for name, value in tree["metadata"].items() if name in _NAMESPACE_METADATA}
    return {"metadata": metadata, "spec": tree.get("spec", {}), "status": tree.get("status", {})}
