"""Where an object lies: Kubernetes' own key layout, `/registry/pods/NAMESPACE/NAME`.

Segments of a path never reach a key unchecked: a name or namespace that could climb out of its folder is refused.
"""

from apimachinery import status
from apiserver.resources.spec import Resource


class Layout:
    """The keys below one prefix, usually /registry."""

    def __init__(self, prefix: str) -> None:
        self.root = f"/{prefix.strip('/')}/".encode()

    def shelf(self, resource: Resource) -> bytes:
        return self.root + resource.folder

    def scope(self, resource: Resource, namespace: str) -> bytes:
        """The prefix of all objects in a namespace, or of all there are for ""."""
        shelf = self.shelf(resource)
        return shelf + _segment(namespace) + b"/" if namespace else shelf

    def object(self, resource: Resource, namespace: str, name: str) -> bytes:
        return self.scope(resource, namespace) + _segment(name)


def _segment(text: str) -> bytes:
    if text in {"", ".", ".."} or "/" in text or "%" in text:
        raise status.BadRequest(f'invalid path segment "{text}"')
    return text.encode()
