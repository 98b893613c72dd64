"""Build the AdmissionRequest of a write, without its objects, for webhooks and for expressions."""

from typing import Any, Final

import orjson

from mockube.apimachinery.groups import NAMESPACES
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, RequestContext
from mockube.apiserver.user import User

_OPTIONS: Final = {
    Operation.CREATE: ("CreateOptions", ("dryRun", "fieldManager", "fieldValidation")),
    Operation.UPDATE: ("UpdateOptions", ("dryRun", "fieldManager", "fieldValidation")),
    Operation.DELETE: ("DeleteOptions", ("dryRun", "gracePeriodSeconds", "propagationPolicy")),
}


def admission_request(attributes: AdmissionAttributes, row: Resource, resource: Resource) -> Tree:
    """Return the request, with the kind and the resource of the rows that matched."""
    own, subresource = attributes.resource, attributes.subresource
    named = {
        "subResource": subresource,
        "requestSubResource": subresource,
        "name": attributes.name or (attributes.object or {}).get("metadata", {}).get("name", ""),
        "namespace": attributes.namespace,
    }
    if attributes.resource.group_resource == NAMESPACES:
        named["namespace"] = named["name"]
    return {
        "kind": _kind(row, attributes),
        "resource": _resource(resource),
        "requestKind": _kind(own, attributes),
        "requestResource": _resource(own),
        "operation": attributes.operation.value,
        "userInfo": _user_info(attributes.context.user),
        "dryRun": attributes.dry_run,
        "options": _options(attributes.operation, attributes.context),
        **{field: value for field, value in named.items() if value},
    }


def _kind(row: Resource, attributes: AdmissionAttributes) -> Tree:
    """Return the kind of the written object; a subresource may have another kind than its resource."""
    subresource = attributes.context.subresource
    (group, version), kind = row.group_version, row.kind
    if subresource is not None and subresource.kind:
        (group, version), kind = subresource.group_version or row.group_version, subresource.kind
    return {"group": group, "version": version, "kind": kind}


def _resource(row: Resource) -> Tree:
    return {"group": row.group, "version": row.version, "resource": row.name}


def _user_info(user: User) -> Tree:
    fields: Tree = {
        "username": user.name,
        "uid": user.uid,
        "groups": [*user.groups],
        "extra": {name: [*values] for name, values in user.extra.items()},
    }
    return {name: value for name, value in fields.items() if value}


def _options(operation: Operation, context: RequestContext) -> Tree | None:
    if operation not in _OPTIONS:
        return None
    kind, fields = _OPTIONS[operation]
    options: Tree = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if operation is Operation.DELETE and context.body.data:
        return options | _sent_options(context.body.data)
    for field in fields:
        if value := context.parameter(field):
            options[field] = _option(field, value)
    return options


def _option(field: str, value: str) -> Any:
    if field == "dryRun":
        return [value]
    return int(value) if field == "gracePeriodSeconds" and value.lstrip("-").isdecimal() else value


def _sent_options(data: bytes) -> Tree:
    """Return the options in the body of a deletion; nothing if the body is not JSON."""
    try:
        tree = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    hidden = ("kind", "apiVersion")
    return (
        {name: value for name, value in tree.items() if name not in hidden} if isinstance(tree, dict) else {}
    )
