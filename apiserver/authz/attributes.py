"""A request as authorization sees it, and how it is told that it may not be made."""

from msgspec import Struct

from apimachinery import gotext, status
from apimachinery.groups import GroupResource
from apimachinery.status import Forbidden
from apiserver.rest.call import User


class Attributes(Struct, frozen=True, kw_only=True):
    """Of a request for a resource, or for a path if there is no resource."""

    user: User
    verb: str
    path: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def is_resource(self) -> bool:
        return bool(self.resource)


def forbidden(attributes: Attributes, reason: str) -> Forbidden:
    message = _message(attributes)
    subject = GroupResource(attributes.group, attributes.resource)
    return status.forbidden(subject, attributes.name, f"{message}: {reason}" if reason else message)


def _message(attributes: Attributes) -> str:
    """Escaped, for it holds what the client sent and might be shown by a browser."""
    user = f"User {gotext.quote(attributes.user.name)} cannot {attributes.verb}"
    if not attributes.is_resource:
        said = f"{user} path {gotext.quote(attributes.path)}"
    else:
        resource = "/".join(filter(None, (attributes.resource, attributes.subresource)))
        where = (
            f"in the namespace {gotext.quote(attributes.namespace)}"
            if attributes.namespace
            else "at the cluster scope"
        )
        said = (
            f"{user} resource {gotext.quote(resource)} in API group {gotext.quote(attributes.group)} {where}"
        )
    return said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
