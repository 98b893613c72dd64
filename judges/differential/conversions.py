"""Conversations about a custom kind whose versions a webhook converts, with a fault that an annotation of the object names.

Several field managers write the objects in both versions. Both API servers call the webhook of `conversion_webhook`.
"""

from collections.abc import Generator, Iterator
from random import Random

from judges.differential.conversations import APPLY, JSON_PATCH, MERGE, request
from judges.differential.conversion_webhook import FAULT, FAULTS, Webhook

MANAGERS = ("one", "two", "three")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
OBJECTS = 8
"""Objects of one conversation."""
STEPS = 6
"""Requests about each object after its creation."""
_ITEMS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "required": ["name"], "properties": {"name": TEXT, "value": TEXT}},
}
SCHEMAS = {
    "v1": {
        "spec": {"host": TEXT, "size": NUMBER | {"default": 3}, "replicas": NUMBER, "items": _ITEMS},
        "status": {"phase": TEXT, "replicas": NUMBER},
    },
    "v2": {
        "spec": {
            "endpoint": {"type": "object", "properties": {"host": TEXT, "port": NUMBER | {"default": 80}}},
            "size": NUMBER,
            "colour": TEXT | {"default": "red"},
            "replicas": NUMBER,
            "items": _ITEMS,
        },
        "status": {"state": TEXT, "replicas": NUMBER},
    },
}


def cases(seed: int, webhook: Webhook) -> Iterator[Generator[dict, dict, None]]:
    """Yield conversations without end."""
    number = 0
    while True:
        yield _case(Random(f"conversions/{seed}/{number}"), webhook)
        number += 1


def _path(version):
    return f"/apis/${{ns}}.example.com/{version}/namespaces/${{ns}}/things"


def _definition(stored, webhook):
    versions = []
    for name, parts in SCHEMAS.items():
        properties = {part: {"type": "object", "properties": fields} for part, fields in parts.items()}
        scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        versions.append(
            {
                "name": name,
                "served": True,
                "storage": name == stored,
                "subresources": {"status": {}, "scale": scale},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
            }
        )
    client = {"url": webhook.url, "caBundle": webhook.bundle}
    hook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.${ns}.example.com"},
        "spec": {
            "group": "${ns}.example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "conversion": {"strategy": "Webhook", "webhook": hook},
            "versions": versions,
        },
    }


def _case(random, webhook):
    stored = random.choice([*SCHEMAS])
    created = yield request("POST", DEFINITIONS, "", _definition(stored, webhook))
    if created["status"] != 201:
        return
    for version in SCHEMAS:
        yield {"wait": _path(version)}
    for number in range(OBJECTS):
        fault = random.choice(FAULTS) if random.random() < 0.6 else ""
        yield from _object(random, f"x{number}", fault)
        if random.random() < 0.3:
            yield request("GET", _path(random.choice([*SCHEMAS])), random.choice(("", "labelSelector=a%3Db")))
        # A list fails with an object that cannot be converted, so only the last object may have a fault. Upstream cannot
        # change it in the other version before its watch cache has seen it without the fault.
        patch = {"metadata": {"annotations": {FAULT: None}}}
        yield request("PATCH", f"{_path(stored)}/x{number}", "", patch, content=MERGE)
        if fault or random.random() < 0.5:
            yield request("DELETE", f"{_path(stored)}/x{number}")
    yield request("DELETE", f"{DEFINITIONS}/things.${{ns}}.example.com")


def _object(random, name, fault):
    version = random.choice([*SCHEMAS])
    body = _thing(random, version, name)
    if fault:
        to = random.choice(({}, {}, {"to": "/v1"}, {"to": "/v2"}))
        body["metadata"]["annotations"] = {FAULT: fault} | to
    if random.random() < 0.6:
        yield request("POST", _path(version), random.choice(("fieldManager=zero", "dryRun=All", "")), body)
    else:
        yield _apply(random, version, name, body)
    for _ in range(STEPS):
        version = random.choice([*SCHEMAS])
        one = f"{_path(version)}/{name}"
        manager = f"fieldManager={random.choice(MANAGERS)}"
        part = _thing(random, version, name)
        inner = random.choice(("", "", "", "", "/status", "/scale"))
        if inner == "/scale":
            part = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}}
            part |= {"spec": {"replicas": random.choice((0, 1, 2))}}
        match random.choice(("get", "get", "put", "merge", "json", "apply", "apply", "apply")):
            case "get":
                yield request("GET", one + inner)
            case "put":
                yield request("PUT", one + inner, manager, part)
            case "merge":
                yield request("PATCH", one + inner, manager, {"spec": part["spec"]}, content=MERGE)
            case "json":
                operation = {"op": "add", "path": "/spec/replicas", "value": random.choice((0, 4))}
                yield request("PATCH", one + inner, manager, [operation], content=JSON_PATCH)
            case _:
                yield _apply(random, version, name, part, inner)


def _apply(random, version, name, body, inner=""):
    options = f"fieldManager={random.choice(MANAGERS)}" + random.choice(("", "&force=true", "&force=true"))
    return request("PATCH", f"{_path(version)}/{name}{inner}", options, body, content=APPLY)


def _thing(random, version, name):
    """Return an object with some fields of a version."""
    values = {"replicas": random.choice((0, 1, 2)), "size": random.choice((1, 2))}
    values |= {"colour": "blue", "host": "h", "phase": random.choice("ab"), "state": random.choice("ab")}
    values["endpoint"] = random.choice(({"host": "h"}, {"port": 81}, {"host": "i", "port": 82}, {}))
    names = random.sample("abc", random.choice((0, 1, 2)))
    values["items"] = [{"name": each} | random.choice(({}, {"value": "v"})) for each in names]
    body = {"apiVersion": f"${{ns}}.example.com/{version}", "kind": "Thing", "metadata": {"name": name}}
    if random.random() < 0.5:
        body["metadata"]["labels"] = dict.fromkeys(random.sample("abc", random.choice((1, 2))), "b")
    for part, fields in SCHEMAS[version].items():
        if random.random() < 0.8 or part == "spec":
            body[part] = {each: values[each] for each in fields if random.random() < 0.5}
    return body
