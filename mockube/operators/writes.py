"""Which requests of an operator are writes that count. Pure."""

from typing import Final

WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")
LEASES: Final = "leases.coordination.k8s.io"
_NOISE: Final = frozenset({"events", "events.events.k8s.io", LEASES})
"""Resources whose writes do not belong to what an operator makes."""
_STORED_NOWHERE: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io", "control.mockube.dev"})


def is_write(verb: str, resource: str) -> bool:
    """Return whether a request would change an object that counts; the resource is that of a Fault, such as websites.example.com/status."""
    name, _, subresource = resource.partition("/")
    group = name.partition(".")[2]
    return (
        verb in WRITES
        and name not in _NOISE
        and group not in _STORED_NOWHERE
        and (name, subresource) != ("serviceaccounts", "token")
    )
