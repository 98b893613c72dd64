"""The bodies of recorded requests: which are kept, and what a reader sees of them."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import secrets
from mockube.apimachinery.groups import SECRETS, GroupResource
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry.patch import PATCH_TYPES
from mockube.apiserver.registry.request_context import Body
from mockube.apiserver.request_info import RequestInfo
from mockube.apiserver.wire.negotiation import patch_media_type
from mockube.apiserver.wire.parse import UnreadableBody, parse, parse_applied

MAX_BODY: Final = 32 * 1024
"""The bytes of the longest body that is kept."""
_PUBLIC_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "type", "immutable"})
"""The fields of a Secret that have no secret values. Another one may be a misspelt field that does."""
_METADATA: Final = "metadata"
_METADATA_FIELDS: Final = frozenset(
    (
        *("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "selfLink"),
        *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
        *("labels", "annotations", "ownerReferences", "finalizers", "managedFields"),
    )
)
"""The fields of the metadata. Another one may be a field of the Secret with a wrong indentation."""
_KIND: Final = "Secret"
_AUTHENTICATION: Final = "authentication.k8s.io"
"""The group whose reviews contain bearer tokens."""
_PROXY: Final = "proxy"
"""The subresource whose bodies are those of another program."""
TOO_LARGE: Final = f"it is larger than {MAX_BODY} bytes"
DROPPED: Final = "it was dropped for newer ones: --control-request-bodies sets how many bytes are kept"
UNREADABLE: Final = "it cannot be decoded"


class KeptBody(Struct, frozen=True, gc=False):
    """The body of a request, or why it is not kept."""

    body: Body | None = None
    omitted: str = ""


NO_BODY: Final = KeptBody()
_VALUES: Final = ("data",)
"""The path of the values of a Secret."""


def kept_body(info: RequestInfo, body: Body) -> KeptBody:
    """Return what is kept of the body of a request: nothing if it has none, or one that may contain tokens."""
    if not body.data or not info.is_resource or info.group == _AUTHENTICATION or info.subresource == _PROXY:
        return NO_BODY
    return KeptBody(omitted=TOO_LARGE) if len(body.data) > MAX_BODY else KeptBody(body=body)


def fields_of(recorded: KeptBody, resource: GroupResource) -> Tree:
    """Return the fields of a Request for its body. The values of Secrets are masked."""
    if recorded.body is None:
        return {"bodyOmitted": recorded.omitted} if recorded.omitted else {}
    try:
        tree = _decoded(recorded.body)
    except (UnreadableBody, ApiError, ValueError):
        return {"bodyOmitted": UNREADABLE}
    is_secret = resource == SECRETS or (isinstance(tree, dict) and tree.get("kind") == _KIND)
    return {"body": _masked(tree) if is_secret else tree}


def _decoded(body: Body) -> Any:
    media_type = patch_media_type(body.media_type)
    if body.applies:
        return parse_applied(body.data).tree
    return parse(body.data, "application/json" if media_type in PATCH_TYPES else body.media_type).tree


def _masked(tree: Any) -> Any:
    """Return a Secret, or a patch of one, without the values. It may be invalid."""
    if isinstance(tree, list):
        return [_masked_operation(each) for each in tree]
    if not isinstance(tree, dict):
        return secrets.MASK
    return {name: _masked_field(name, value) for name, value in tree.items()}


def _masked_field(name: str, value: Any) -> Any:
    if name == _METADATA and isinstance(value, dict):
        return {key: _masked_at((name, key), member) for key, member in value.items()}
    return _masked_at((name,), value)


def _masked_at(path: Sequence[str], value: Any) -> Any:
    """Return what is at a path of a Secret, without the values if it may have some."""
    is_nested = len(path) > 1 and path[0] == _METADATA
    is_public = path[1] in _METADATA_FIELDS if is_nested else path[0] in _PUBLIC_FIELDS
    return secrets.masked(value, path if is_public else _VALUES)


def _masked_operation(operation: Any) -> Any:
    """Return an operation of a JSON patch without the values."""
    if not isinstance(operation, dict):
        return secrets.MASK
    first, *parts = str(operation.get("path", "")).split("/")
    if not first and not parts:
        value = _masked(operation.get("value"))
    elif first:
        value = secrets.masked(operation.get("value"), _VALUES)
    elif len(parts) == 1:
        value = _masked_field(parts[0], operation.get("value"))
    else:
        value = _masked_at(parts, operation.get("value"))
    known = {name: operation[name] for name in ("op", "path", "from") if name in operation}
    return {**known, "value": value} if "value" in operation else known
