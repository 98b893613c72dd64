"""Objects of every kind, through the server: defaults, validation, storage, and every response format."""

import re
from urllib.parse import quote

import orjson

from mockube.apimachinery import yaml_decode
from mockube.apimachinery.schema import builtin
from mockube.apiserver.wire.protobuf import envelope
from tests.fuzz.engine import Fault, Target
from tests.fuzz.server import path_of, session
from tests.fuzz.values import object_of
from tests.support.hostile import hostile_bodies
from tests.support.hostile.hostile_samples import OWN, recorded_samples
from tests.support.server.rows import catalog

ROWS = {
    f"{row.api_version}/{row.name}": row
    for row in catalog().values()
    if "create" in row.verbs and builtin.load().kind(row.api_version, row.kind) is not None
}
_LEFT_OUT = ("namespaces", "flowschemas")
"""Kinds that are only sent as dry runs: the server itself writes the status of a new flow schema."""
STORED = {name: row for name, row in ROWS.items() if "get" in row.verbs and row.name not in _LEFT_OUT}
_OF_KIND = {(row.api_version, row.kind): name for name, row in ROWS.items()}
OPTIONS = ("fieldValidation=Strict", "fieldValidation=Ignore", "fieldValidation=Warn&fieldManager=m", "")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


def samples():
    """Valid objects by their resource."""
    found = {}
    for sample in (*OWN, *(recorded_samples() or ())):
        body = sample.body
        if sample.method == "POST" and isinstance(body, dict):
            name = _OF_KIND.get((body.get("apiVersion"), body.get("kind")))
            if name is not None:
                found.setdefault(name, []).append(body)
    return found


SAMPLES = samples()


def make_object(random, resource, *, changed=0.5):
    """Return a valid object, changed or not, or one made from its schema."""
    row = ROWS[resource]
    if resource in SAMPLES and random.random() < 0.6:
        tree = random.choice(SAMPLES[resource])
        if random.random() < changed:
            tree = merged(tree, object_of(random, row.api_version, row.kind), random)
        tree = hostile_bodies.mutated(tree, random) if random.random() < changed else tree
    else:
        tree = object_of(random, row.api_version, row.kind, odd=random.choice((0.0, 0.03, 0.1)))
    if isinstance(tree, dict) and isinstance(tree.get("metadata"), dict):
        metadata = {name: value for name, value in tree["metadata"].items() if name != "generateName"}
        tree = tree | {"metadata": metadata | {"name": "a", "namespace": "default"}}
        if not row.namespaced:
            del tree["metadata"]["namespace"]
    return tree


def merged(tree, other, random):
    """Return a tree with some parts of another of the same kind."""
    if isinstance(tree, list) and isinstance(other, list):
        if tree and other and random.random() < 0.7:
            return [merged(tree[0], other[0], random), *tree[1:]]
        return random.choice((tree, other, [*tree, *other]))
    if not isinstance(tree, dict) or not isinstance(other, dict):
        return tree if random.random() < 0.7 else other
    made = dict(tree)
    for name, value in other.items():
        if name in made:
            made[name] = (
                merged(made[name], value, random) if name not in ("apiVersion", "kind") else made[name]
            )
        elif random.random() < 0.3:
            made[name] = value
    return made


def _make(random):
    resource = random.choice(list(ROWS))
    return {
        "resource": resource,
        "object": make_object(random, resource),
        "update": make_object(random, resource),
        "options": random.choice(OPTIONS),
    }


def _mutate(case, random):
    row = ROWS[case["resource"]]
    field = random.choice(("object", "update"))
    tree = hostile_bodies.mutated(case[field], random)
    if random.random() < 0.5:
        tree = merged(case[field], object_of(random, row.api_version, row.kind), random)
    return case | {field: tree}


_WITH_VERSION = "500: resourceVersion should not be set on objects to be created"
"""A dry run does not check it, as kube-apiserver's does not."""

_OUTSIDE_RANGE = "provided port is not in the valid range"
"""A dry run does not check node ports either."""

_CHECKED_AT_UPDATES = re.compile(r"is invalid: \[?status\.addresses\[")
"""Of nodes: kube-apiserver too takes two equal addresses at a create and refuses them afterwards."""


async def _check(server, case):
    if case.keys() < {"resource", "object", "update", "options"} or case["resource"] not in ROWS:
        return "no case"
    row = ROWS[case["resource"]]
    path, body, options = path_of(row), orjson.dumps(case["object"]), case["options"]
    if case["resource"] not in STORED:
        return (await server.send("POST", f"{path}?{options}&dryRun=All", body)).outcome
    tried = await server.send("POST", f"{path}?{options}&dryRun=All", body)
    created = await server.send("POST", f"{path}?{options}", body)
    is_checked_later = created.outcome == _WITH_VERSION or _OUTSIDE_RANGE in created.outcome
    if tried.status != created.status and not is_checked_later:
        raise Fault(f"a dry run of {row.name} returns {tried.outcome}, a create {created.outcome}")
    if created.status != 201:
        return created.outcome
    name = created.tree["metadata"]["name"]
    one = f"{path}/{quote(name, safe='')}"
    try:
        await _check_stored(server, row, path, one, created)
        updated = await server.send("PUT", f"{one}?{options}", orjson.dumps(case["update"]))
        for subresource in row.subresources:
            if "update" in subresource.verbs and not subresource.kind:
                await server.send("PUT", f"{one}/{subresource.name}?{options}", orjson.dumps(case["update"]))
    finally:
        await clear(server, one)
    return f"201 {updated.outcome}"


async def _check_stored(server, row, path, one, created):
    """Check that every format shows the same object."""
    tree = created.tree
    seen = await server.send("GET", one)
    if seen.body != created.body:
        raise Fault(f"a GET of {row.name} differs from what its create answered")
    if yaml_decode.load((await server.send("GET", one, Accept="application/yaml")).body).tree != tree:
        raise Fault(f"{row.name} as YAML are something else")
    proto = await server.send("GET", one, Accept="application/vnd.kubernetes.protobuf")
    if proto.status != 200:
        raise Fault(f"{row.name} cannot be read as protobuf: {proto.outcome}")
    envelope.decode(proto.body)
    for accept in (TABLE, PARTIAL):
        if (await server.send("GET", one, Accept=accept)).status != 200:
            raise Fault(f"{row.name} cannot be read as {accept}")
    listed = await server.send("GET", path, Accept=TABLE)
    if listed.status != 200 or not listed.tree["rows"]:
        raise Fault(f"a list of {row.name} as a table lacks what was created")
    again = await server.send("PUT", one, created.body)
    # A zero time is written as null, which is read as none: kube-apiserver too sees a change, also where it
    # refuses one, as in the template of a Job.
    has_zero_time = b":null" in created.body
    if _CHECKED_AT_UPDATES.search(again.outcome) or (has_zero_time and "field is immutable" in again.outcome):
        return
    if again.status != 200:
        raise Fault(f"{row.name} are refused as they were stored: {again.outcome}")
    is_same = again.tree["metadata"]["resourceVersion"] == tree["metadata"]["resourceVersion"]
    if not is_same and not has_zero_time:
        raise Fault(f"a write of {row.name} that changes nothing changes the resourceVersion")


async def clear(server, one, *, own_finalizers=()):
    """Delete an object by its name in any state; otherwise raise a fault."""
    patch = orjson.dumps({"metadata": {"finalizers": list(own_finalizers)}})
    left = None
    for _ in range(2):
        await server.send("PATCH", one, patch, Content_Type="application/merge-patch+json")
        await server.send("DELETE", one, b'{"gracePeriodSeconds":0}')
        left = await server.send("GET", one)
        if left.status == 404:
            return
    if not own_finalizers:
        raise Fault(f"an object cannot be deleted: {left.outcome}")


TARGETS = (
    Target(
        name="objects", generate=_make, check=_check, session=session, weight=4, mutate=_mutate, examples=250
    ),
)
