"""Conversations of several field managers: each applies a part of an object, takes over fields, and drops fields."""

import copy
from collections.abc import Generator, Iterator
from random import Random

from judges.differential.conversations import (
    APPLY,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Change,
    accepted_bodies,
    request,
)
from judges.differential.mutations import mutated

MANAGERS = ("one", "two", "three")
STEPS = 12
"""Requests of one case after the first."""
IDENTITIES = (
    "name",
    "key",
    "type",
    "ip",
    "containerPort",
    "port",
    "protocol",
    "mountPath",
    "devicePath",
    "uid",
    "topologyKey",
)
"""Keys of lists that are maps: when an element is cut down, these stay."""


def cases(seed: int, resources, schemas_of) -> Iterator[Generator[dict, dict, None]]:
    """Yield conversations without end; `resources` are keyed by their paths."""
    bodies = accepted_bodies(tables=False)
    paths = sorted(path for path in bodies if path in resources)
    number = 0
    while True:
        random = Random(f"managers/{seed}/{number}")
        path = random.choice(paths)
        resource = resources[path]
        schemas = schemas_of(resource.group, resource.version)
        schema = schemas.of_kind(resource.group, resource.version, resource.kind) or {}
        yield _Case(Change(random, schemas, schema), path, resource, bodies[path]).requests()
        number += 1


class _Case:
    def __init__(self, change, path, resource, bodies):
        self.change, self.random = change, change.random
        self.path, self.resource = path, resource
        self.whole = copy.deepcopy(self.random.choice(bodies))
        self.whole |= {
            "apiVersion": "/".join(filter(None, (resource.group, resource.version))),
            "kind": resource.kind,
        }
        self.whole.pop("status", None)
        metadata = self.whole["metadata"] = dict(self.whole.get("metadata") or {})
        metadata.pop("generateName", None)
        metadata.setdefault("name", "x")
        if "${ns}" not in path and resource.kind not in {"CustomResourceDefinition", "IPAddress"}:
            metadata["name"] = "${ns}-x"
        metadata["labels"] = {"a": "1", "b": "2"} | (metadata.get("labels") or {})
        metadata["finalizers"] = ["example.com/a", "example.com/b"]
        self.current = {}
        schemas = change.schemas
        self.status = schemas.value(self.random, schemas.field(change.schema, "status"), 1)

    def requests(self) -> Generator[dict, dict, None]:
        random = self.random
        if random.random() < 0.5:
            first = request("POST", self.path, "fieldManager=zero", self.whole)
        else:
            first = self._apply_request("", self.whole)
        answer = yield first
        for _ in range(STEPS):
            found = answer["body"]
            if (
                answer["status"] in (200, 201)
                and isinstance(found, dict)
                and found.get("kind") == self.resource.kind
            ):
                self.current = found
            answer = yield self._next_request()

    def _next_request(self):
        random = self.random
        inner = ""
        if self.resource.subresources and random.random() < 0.3:
            inner = "/" + random.choice(self.resource.subresources)
        if inner == "/scale" and random.random() < 0.8:
            return self._scale_request(inner)
        draw = random.random()
        if draw < 0.65 or not self.current:
            part = self._part(
                self.whole if random.random() < 0.7 or not self.current else self._client_fields(), inner
            )
            return self._apply_request(
                inner,
                mutated(random, part, self.change.schemas, self.change.schema, random.choice((0, 0, 0, 1))),
            )
        if draw < 0.75:
            body = self._part(self._client_fields(), inner)
            return request("PUT", self._object_path(inner), f"fieldManager={random.choice(MANAGERS)}", body)
        if draw < 0.9:
            body = self._part(self.whole, inner)
            return request(
                "PATCH",
                self._object_path(inner),
                f"fieldManager={random.choice(MANAGERS)}",
                body,
                content=random.choice((MERGE, STRATEGIC)),
            )
        body = [self.change.operation(self._client_fields())]
        return request(
            "PATCH",
            self._object_path(inner),
            f"fieldManager={random.choice(MANAGERS)}",
            body,
            content=JSON_PATCH,
        )

    def _scale_request(self, inner):
        random, name = self.random, self.whole["metadata"]["name"]
        body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}}
        body["spec"] = random.choice(({}, {"replicas": 0}, {"replicas": 1}, {"replicas": 2}))
        if random.random() < 0.2:
            body["status"] = {"replicas": 1, "selector": "a=b"}
        if random.random() < 0.6:
            return self._apply_request(inner, body)
        method, content = random.choice((("PUT", ""), ("PATCH", MERGE)))
        options = f"fieldManager={random.choice(MANAGERS)}"
        return request(method, self._object_path(inner), options, body, content=content)

    def _object_path(self, inner=""):
        return f"{self.path}/{self.whole['metadata']['name']}{inner}"

    def _apply_request(self, inner, body):
        random = self.random
        options = [f"fieldManager={random.choice(MANAGERS)}"]
        options += random.choice(
            ([], [], ["force=true"], ["force=true"], ["dryRun=All"], ["fieldValidation=Strict"])
        )
        return request("PATCH", self._object_path(inner), "&".join(options), body, content=APPLY)

    def _client_fields(self):
        body = copy.deepcopy(self.current)
        for key in ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"):
            body.get("metadata", {}).pop(key, None)
        body.pop("status", None)
        return body

    def _part(self, body, inner):
        """Return a part of an object that still identifies it; for its status, and sometimes otherwise, with a status."""
        random = self.random
        if self.status and random.random() < (0.8 if inner == "/status" else 0.1):
            body = body | {"status": self.status}
        kept = random.choice((1, 0.95, 0.8, 0.5, 0.2))
        part = _cut(random, body, kept)
        part["metadata"] = part.get("metadata") or {}
        part["metadata"]["name"] = self.whole["metadata"]["name"]
        return part | {"apiVersion": self.whole["apiVersion"], "kind": self.whole["kind"]}


def _cut(random, value, kept):
    if isinstance(value, dict):
        return {
            key: _cut(random, member, kept)
            for key, member in value.items()
            if key in IDENTITIES or random.random() < kept
        }
    if isinstance(value, list):
        items = [_cut(random, item, kept) for item in value if random.random() < kept]
        return items[::-1] if random.random() < 0.2 else items
    if random.random() < 0.1:
        return f"{value}-x" if isinstance(value, str) else value + 1 if value.__class__ is int else value
    return copy.deepcopy(value)
