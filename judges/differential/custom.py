"""Conversations about custom kinds: a random definition, and requests with all verbs for objects of it."""

import copy
from collections.abc import Generator
from random import Random

from judges.differential.conversations import APPLY, JSON_PATCH, LIST_OPTIONS, MERGE, Change, request
from judges.differential.options import BODIES
from judges.differential.schemas import Schemas

TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
LEAVES = (
    *(TEXT, NUMBER, FLAG, {"type": "number"}, TEXT | {"nullable": True}),
    *(TEXT | {"default": "d"}, NUMBER | {"default": 3}, FLAG | {"default": False}),
    *(TEXT | {"enum": ["a", "b"]}, TEXT | {"pattern": "^[a-z]*$"}, TEXT | {"maxLength": 2}),
    *(TEXT | {"format": "date-time"}, TEXT | {"format": "byte"}, TEXT | {"format": "ipv4"}),
    *(NUMBER | {"minimum": 0, "maximum": 80}, NUMBER | {"multipleOf": 2}, NUMBER | {"format": "int32"}),
    *({"x-kubernetes-int-or-string": True}, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
    {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
)
MAX_REQUESTS = 5000
"""Requests within which a new kind must be served."""


def cases(seed: int) -> Generator[Generator[dict, dict, None], None, None]:
    """Yield conversations without end."""
    number = 0
    while True:
        yield _case(Random(f"custom/{seed}/{number}"))
        number += 1


def _schema(random, depth=0):
    draw = random.random()
    if depth >= 3 or draw < 0.5:
        return copy.deepcopy(random.choice(LEAVES))
    if draw < 0.7:
        return _list(random, depth)
    if draw < 0.8:
        return {"type": "object", "additionalProperties": _schema(random, depth + 1)}
    return _struct(random, depth)


def _list(random, depth):
    kind = random.choice(("", "set", "map", "atomic"))
    if kind == "set":
        return {"type": "array", "x-kubernetes-list-type": "set", "items": random.choice((TEXT, NUMBER))}
    if kind == "map":
        items = _struct(random, depth + 1)
        items["properties"]["k"], items["required"] = TEXT, ["k"]
        keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
        return {"type": "array", "items": items} | keyed
    found = {"type": "array", "items": _schema(random, depth + 1), "maxItems": 3}
    return found | ({"x-kubernetes-list-type": kind} if kind else {})


def _struct(random, depth):
    names = random.sample(("a", "b", "c", "d", "e"), random.choice((1, 2, 3)))
    found = {"type": "object", "properties": {name: _schema(random, depth + 1) for name in names}}
    if random.random() < 0.2:
        found["required"] = [names[0]]
    if random.random() < 0.2:
        found["x-kubernetes-validations"] = [{"rule": f"has(self.{names[0]})", "message": "is needed"}]
    if random.random() < 0.1:
        found["x-kubernetes-map-type"] = "atomic"
    return found


def _definition(random):
    schema = {"type": "object", "properties": {"spec": _struct(random, 0), "status": _struct(random, 1)}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if random.random() < 0.5:
        version["subresources"] = {"status": {}}
    group = "${ns}.example.com"
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    schemas = {"v1": schema}
    if random.random() < 0.3:
        schemas["v2"] = {
            "type": "object",
            "properties": {"spec": _struct(random, 0), "status": _struct(random, 1)},
        }
        second = version | {"name": "v2", "storage": False, "schema": {"openAPIV3Schema": schemas["v2"]}}
        if random.random() < 0.3:
            second["subresources"] = {} if "subresources" in version else {"status": {}}
        spec["versions"].append(second)
    if random.random() < 0.3:
        _add_scale(spec["versions"])
    metadata = {"name": f"things.{group}"}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return body | {"metadata": metadata, "spec": spec}, schemas


def _add_scale(versions):
    for version in versions:
        for part in version["schema"]["openAPIV3Schema"]["properties"].values():
            part["properties"]["replicas"] = NUMBER
        paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        version["subresources"] = version.get("subresources", {}) | {"scale": paths}


def _case(random):
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    body, found = _definition(random)
    created = yield request("POST", definitions, "", body)
    if created["status"] != 201:
        return
    changes = {
        f"/apis/${{ns}}.example.com/{version}/namespaces/${{ns}}/things": Change(random, Schemas({}), schema)
        for version, schema in found.items()
    }
    for path in changes:
        yield {"wait": path}
    subresources = [*body["spec"]["versions"][0].get("subresources", ())]
    for number in range(random.choice((6, 10, 14))):
        yield from _object(random, changes, f"x{number}", subresources)
        if len(changes) > 1 and random.random() < 0.3:
            yield from _change_versions(random, definitions, body["spec"]["versions"], number)
            for path in changes:
                yield request("GET", path)
    yield request("DELETE", f"{definitions}/things.${{ns}}.example.com")


def _change_versions(random, definitions, versions, number):
    """Store objects in another version, or change the defaults of one; a new version shows when the definition is in use."""
    if random.random() < 0.7:
        for version in versions:
            version["storage"] = not version["storage"]
    else:
        spec = random.choice(versions)["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["added"] = TEXT | random.choice(({}, {"default": "e"}))
    marker = versions[0] | {"name": f"m{number}", "storage": False}
    patch = {"spec": {"versions": [*versions, marker]}}
    yield request("PATCH", f"{definitions}/things.${{ns}}.example.com", "", patch, content=MERGE)
    yield {"wait": f"/apis/${{ns}}.example.com/m{number}/namespaces/${{ns}}/things"}


def _object(random, changes, name, subresources):
    path, change = random.choice([*changes.items()])
    body = {"apiVersion": _version(path), "kind": "Thing", "metadata": {"name": name}}
    body |= change.schemas.value(random, change.schema, 1)
    options = ("", "", "", "fieldValidation=Strict", "fieldValidation=Warn", "dryRun=All")
    created = yield request("POST", path, random.choice(options), change.mutated(body, (0, 0, 1, 2)))
    current = created["body"]
    if created["status"] != 201:
        return
    for _ in range(random.randrange(1, 5)):
        path, change = random.choice([*changes.items()])
        current = current | {"apiVersion": _version(path)}
        one = f"{path}/{name}" + ("/status" if "status" in subresources and random.random() < 0.2 else "")
        if "scale" in subresources and random.random() < 0.2:
            yield _scale_request(random, f"{path}/{name}/scale")
        match random.choice(("get", "list", "put", "merge", "json", "apply", "delete")):
            case "get":
                yield request("GET", one)
            case "list":
                yield request("GET", path, random.choice(LIST_OPTIONS))
            case "put":
                answer = yield request("PUT", one, random.choice(options), change.replacement(current))
                current = answer["body"] if answer["status"] == 200 else current
            case "merge":
                yield request(
                    "PATCH", one, random.choice(options), change.merge_patch(current), content=MERGE
                )
            case "json":
                operations = [change.operation(current)]
                yield request("PATCH", one, random.choice(options), operations, content=JSON_PATCH)
            case "apply":
                applied = change.apply_configuration(current)
                yield request("PATCH", one, "fieldManager=applier&force=true", applied, content=APPLY)
            case _:
                yield request("DELETE", one)


def _scale_request(random, path):
    body = copy.deepcopy(random.choice(BODIES["scale"]))
    method, content = random.choice((("GET", ""), ("PUT", ""), ("PATCH", MERGE), ("PATCH", APPLY)))
    options = "fieldManager=applier&force=true" if content == APPLY else ""
    return request(method, path, options, None if method == "GET" else body, content=content)


def _version(path):
    return "/".join(path.split("/")[2:4])


def wait_for(servers, path):
    """Wait until every server serves a path."""
    for server in servers:
        for _ in range(MAX_REQUESTS):
            if server.send({"method": "GET", "path": path})["status"] == 200:
                break
