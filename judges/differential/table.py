"""The table of one-field changes: each field of an accepted object is removed or replaced, one at a time."""

import copy
from collections.abc import Generator, Iterator

from judges.differential.bodies import NAMED
from judges.differential.conversations import accepted_bodies
from judges.differential.mutations import places

LONG = "x" * 300
VALUES = (
    (bool, ("yes", None)),
    (int | float, (-1, 0, 70000, "ten", 1.5)),
    (str, ("", "Bogus_Value!", 7, LONG, "a/b", "a=b", "1", "-1")),
    (dict, ({}, [], "object", None)),
    (list, ([], {}, "list", None)),
)
"""Replacement values, by type."""
PER_CASE = 200
"""Requests that share a namespace."""


def cases(kinds: tuple[str, ...] = ()) -> Iterator[Generator[dict, dict, None]]:
    """Yield conversations of dry runs for the named kinds, or for all."""
    for path, bodies in sorted(accepted_bodies(tables=False).items()):
        if kinds and path.rpartition("/")[2] not in kinds:
            continue
        requests = list(_requests(path, bodies))
        for start in range(0, len(requests), PER_CASE):
            yield (request for request in requests[start : start + PER_CASE])


def _requests(path, bodies):
    known = set()
    for body in bodies:
        metadata = body.setdefault("metadata", {})
        if body.get("kind") not in NAMED:
            metadata["name"] = "${ns}-x"
        for place in places(body):
            # A field is tried once for each kind, whichever of the bodies have it.
            name = tuple("*" if isinstance(key, int) else key for key in place)
            if name in known or name == ("metadata", "name"):
                continue
            known.add(name)
            for changed in changes(body, place):
                yield {"method": "POST", "path": f"{path}?dryRun=All", "body": changed}


def changes(body, place):
    without = copy.deepcopy(body)
    parent = without
    for key in place[:-1]:
        parent = parent[key]
    old = parent.pop(place[-1])
    yield without
    for value in next((values for kind, values in VALUES if isinstance(old, kind)), ()):
        changed = copy.deepcopy(body)
        parent = changed
        for key in place[:-1]:
            parent = parent[key]
        parent[place[-1]] = value
        yield changed
