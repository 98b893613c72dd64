"""The keys of objects: Kubernetes' own layout, `/registry/pods/NAMESPACE/NAME`.

Names and namespaces are checked, so that a key is always in the folder of its resource.
"""

from functools import lru_cache
from typing import Final, Protocol

from mockube.apimachinery import status
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.names import check_path_segment_name

MASTER_LEASES: Final = b"masterleases/"
"""The folder of the addresses of servers; no resource is stored there."""


class KeyedResource(Protocol):
    """The part of a resource that its keys need."""

    @property
    def folder(self) -> bytes:
        """The folder of the resource's objects, below the prefix."""


class Layout:
    """The keys below one prefix, usually /registry."""

    def __init__(self, prefix: str) -> None:
        self.root = f"/{prefix.strip('/')}/".encode()

    def prefix(self, resource: KeyedResource) -> bytes:
        """Return the prefix of all objects of a resource."""
        return self.root + resource.folder

    def scope(self, resource: KeyedResource, namespace: str) -> bytes:
        """Return the prefix of the objects in a namespace; "" for all namespaces."""
        prefix = self.prefix(resource)
        return prefix + _folder(namespace) if namespace else prefix

    def object(self, resource: KeyedResource, namespace: str, name: str) -> bytes:
        segment = _segment(name)
        if namespace:
            return self.root + resource.folder + _folder(namespace) + segment
        return self.root + resource.folder + segment


def _folder(namespace: str) -> bytes:
    return _usual_folder(namespace) if len(namespace) <= _USUAL_LENGTH else _make_folder(namespace)


def _make_folder(namespace: str) -> bytes:
    if namespace in {"", ".", ".."} or "/" in namespace:
        raise status.BadRequest(f"Namespace parameter invalid: {quote(namespace)}")
    return namespace.encode() + b"/"


_usual_folder = lru_cache(maxsize=1024)(_make_folder)
_USUAL_LENGTH: Final = 63


def _segment(name: str) -> bytes:
    if name in {"", ".", ".."} or "/" in name or "%" in name:
        raise _invalid_name(name)
    return name.encode()


def _invalid_name(name: str) -> status.BadRequest:
    if not name:
        return status.BadRequest("Name parameter required.")
    return status.BadRequest(
        f"Name parameter invalid: {quote(name)}: {';'.join(check_path_segment_name(name))}"
    )
