"""The table of one-field updates: each field of a stored object is removed or replaced, one at a time."""

import copy
from collections.abc import Generator, Iterator

from judges.differential.bodies import NAMED
from judges.differential.conversations import accepted_bodies
from judges.differential.mutations import places
from judges.differential.table import changes

SKIPPED = {("metadata", "managedFields"), ("metadata", "name")}
PER_CASE = 150
"""Requests that share an object."""
BODIES = 2
"""Objects of one kind, at most."""


def cases(
    kinds: tuple[str, ...] = (), subresources: dict[str, tuple[str, ...]] | None = None
) -> Iterator[Generator[dict, dict, None]]:
    """Yield conversations that create an object and then try changes of it; `subresources` by path of the kind."""
    for path, bodies in sorted(accepted_bodies(tables=False).items()):
        if kinds and path.rpartition("/")[2] not in kinds:
            continue
        known: set = set()
        for body in _different(bodies):
            for part in range(_parts(body)):
                yield _case(path, body, part, known, (subresources or {}).get(path, ()))


def _different(bodies):
    """Return the bodies with the most fields."""
    return sorted(bodies, key=lambda body: (-len([*places(body)]), str(body)))[:BODIES]


def _parts(body):
    return 1 + len([*places(body)]) * 6 // PER_CASE


def _case(path, body, part, known, subresources):
    body = copy.deepcopy(body)
    if body.get("kind") not in NAMED:
        body.setdefault("metadata", {})["name"] = "${ns}-x"
    answer = yield {"method": "POST", "path": path, "body": body}
    stored = answer["body"]
    if answer["status"] != 201 or not isinstance(stored, dict) or "name" not in stored.get("metadata", {}):
        return
    here = f"{path}/{stored['metadata']['name']}"
    stored["metadata"].pop("managedFields", None)
    found = [place for place in places(stored) if place[:2] not in SKIPPED]
    sent = 0
    for place in found[part :: _parts(body)]:
        name = tuple("*" if isinstance(key, int) else key for key in place)
        if name in known:
            continue
        known.add(name)
        for changed in changes(stored, place):
            sent += 1
            yield {"method": "PUT", "path": f"{here}?dryRun=All", "body": changed}
            if place[0] == "status" and "status" in subresources:
                yield {"method": "PUT", "path": f"{here}/status?dryRun=All", "body": changed}
