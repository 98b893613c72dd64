"""Random conversations: an object is created from an accepted one, read, changed and deleted in all ways of the API."""

import copy
import json
import re
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass
from random import Random

from judges.differential.bodies import BODIES
from judges.differential.mutations import mutated
from judges.differential.schemas import Schemas
from mockube.apimachinery.tree import Tree
from tests.support.processes.process import ROOT

GOLDEN = ROOT / "tests/conformance/golden/api"
MERGE, STRATEGIC, JSON_PATCH, APPLY = (
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
ACCEPTS = (*["application/json"] * 6, TABLE, PARTIAL, PARTIAL_LIST, "application/yaml", "text/html", "*/*")
WRITE_OPTIONS = (
    *[""] * 24,
    *[
        "fieldManager=tester",
        "fieldValidation=Strict",
        "fieldValidation=Warn",
        "fieldValidation=Ignore",
        "dryRun=All",
    ]
    * 3,
    *("dryRun=", "dryRun=Some", "fieldManager=", "fieldValidation=x", "pretty=true", "fieldManager=a%0Ab"),
)
DELETE_BODIES = (
    *(None, None, {}, {"gracePeriodSeconds": 0}, {"gracePeriodSeconds": -1}, {"gracePeriodSeconds": 5}),
    *(
        {"propagationPolicy": "Orphan"},
        {"propagationPolicy": "Foreground"},
        {"propagationPolicy": "Background"},
    ),
    *(
        {"propagationPolicy": "x"},
        {"preconditions": {"uid": "x"}},
        {"preconditions": {"resourceVersion": "1"}},
    ),
    *({"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}, {"orphanDependents": True}),
    *({"kind": "Pod", "apiVersion": "v1"}, {"dryRun": ["x"]}, {"unknown": 1}, []),
)
DELETE_OPTIONS = (
    *(
        "",
        "",
        "",
        "",
        "dryRun=All",
        "gracePeriodSeconds=0",
        "gracePeriodSeconds=x",
        "propagationPolicy=Orphan",
    ),
)
LIST_OPTIONS = (
    *(
        "",
        "",
        "limit=1",
        "limit=",
        "limit=x",
        "limit=-1",
        "labelSelector=a%3Db",
        "labelSelector=a,!b",
        "labelSelector=a%3D%3D",
    ),
    *("labelSelector=a+in+(b)", "fieldSelector=metadata.name%3Dx", "fieldSelector=metadata.namespace!%3Dx"),
    *(
        "fieldSelector=spec.x%3D1",
        "fieldSelector=a",
        "resourceVersion=0",
        "resourceVersion=x",
        "resourceVersion=1",
    ),
    *(
        "resourceVersionMatch=Exact",
        "resourceVersion=0&resourceVersionMatch=NotOlderThan",
        "continue=x",
        "timeoutSeconds=x",
    ),
    *(
        "resourceVersion=0&resourceVersionMatch=Exact",
        "sendInitialEvents=true",
        "allowWatchBookmarks=x",
        "pretty=1",
    ),
)
METADATA = (
    {"labels": {"a": "b"}},
    {"annotations": {"a": "b"}},
    {"finalizers": ["example.com/f"]},
    {"finalizers": ["f"]},
    {"generateName": "g-", "name": None},
    {"namespace": "other"},
    {"namespace": ""},
    {"resourceVersion": "1"},
    {"resourceVersion": "x"},
    {"uid": "x"},
    {"deletionTimestamp": "2026-01-02T03:04:05Z"},
    {"deletionGracePeriodSeconds": 3},
    {"generation": 7},
    {"creationTimestamp": None},
    {"selfLink": "x"},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]},
    {"managedFields": []},
    {"labels": {"a": None}},
    {"labels": {}},
    {"name": ""},
)


class Conversations:
    """Generates the case of a seed and a number, always the same."""

    def __init__(self, schemas_of, resources) -> None:
        """`schemas_of` is called with a group and a version; `resources` are keyed by their paths."""
        self._schemas_of = schemas_of
        self._resources = resources
        self._bodies = accepted_bodies()
        self._paths = sorted(path for path in self._bodies if path in resources)

    def case(self, seed: int, number: int) -> Generator[dict, dict, None]:
        """Yield requests; the response to each is sent to the generator, as the next may need it."""
        random = Random(f"{seed}/{number}")
        path = random.choice(self._paths)
        resource = self._resources[path]
        schemas = self._schemas_of(resource.group, resource.version)
        schema = schemas.of_kind(resource.group, resource.version, resource.kind) or {}
        change = Change(random, schemas, schema)
        created = yield request(
            "POST", path, random.choice(WRITE_OPTIONS), change.new_body(path, self._bodies[path])
        )
        current = created["body"]
        if created["status"] != 201 or not isinstance(current, dict):
            return
        name = current.get("metadata", {}).get("name", "x")
        for _ in range(random.randrange(1, 6)):
            subresource = ""
            if resource.subresources and random.random() < 0.25:
                subresource = "/" + random.choice(resource.subresources)
            answer = yield self._next_request(change, path, f"{path}/{name}{subresource}", current)
            found = answer["body"]
            is_read = answer["status"] == 200 and isinstance(found, dict) and not subresource
            if is_read and found.get("kind") == resource.kind:
                current = found

    def _next_request(self, change, collection, path, current):
        random = change.random
        match random.choice(("get", "list", "put", "merge", "strategic", "json", "apply", "delete")):
            case "get":
                return _read(random, path, ("", "", "resourceVersion=0", "pretty=true", "x=y"))
            case "list":
                return _read(random, collection, LIST_OPTIONS)
            case "delete":
                body = copy.deepcopy(random.choice(DELETE_BODIES))
                return request("DELETE", path, random.choice(DELETE_OPTIONS), body)
            case "apply":
                options = ["fieldManager=applier"] * (random.random() < 0.9)
                options += ["force=true"] * (random.random() < 0.5)
                return request(
                    "PATCH", path, "&".join(options), change.apply_configuration(current), content=APPLY
                )
            case "put":
                return request("PUT", path, random.choice(WRITE_OPTIONS), change.replacement(current))
            case "json":
                body, content = (
                    [change.operation(current) for _ in range(random.choice((1, 1, 2)))],
                    JSON_PATCH,
                )
            case "merge":
                body, content = change.merge_patch(current), MERGE
            case _:
                body, content = change.merge_patch(current), STRATEGIC
        return request("PATCH", path, random.choice(WRITE_OPTIONS), body, content=content)


@dataclass
class Change:
    """Generates bodies of requests for objects of one kind."""

    random: Random
    schemas: Schemas
    schema: Tree

    def new_body(self, path, bodies):
        body = copy.deepcopy(self.random.choice(bodies))
        metadata = body.setdefault("metadata", {})
        if "${ns}" not in path:
            metadata["name"] = "${ns}-x"
        elif not isinstance(metadata.get("name"), str):
            metadata["name"] = "x"
        if self.random.random() < 0.25:
            metadata |= copy.deepcopy(self.random.choice(METADATA))
        return self.mutated(body, (0, 1, 1, 1, 2, 3))

    def replacement(self, current):
        body = copy.deepcopy(current)
        metadata = body.get("metadata", {})
        if self.random.random() < 0.5:
            metadata.pop("resourceVersion", None)
        metadata.pop("managedFields", None)
        if self.random.random() < 0.2:
            metadata |= copy.deepcopy(self.random.choice(METADATA))
        return self.mutated(body, (0, 1, 1, 2))

    def apply_configuration(self, current):
        body = copy.deepcopy(current)
        for key in ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"):
            body.get("metadata", {}).pop(key, None)
        body.pop("status", None)
        return self.mutated(body, (0, 1, 2))

    def merge_patch(self, current):
        patch = _difference(current, self.mutated(current, (1, 1, 2)))
        if self.random.random() < 0.2 and isinstance(patch.setdefault("metadata", {}), dict):
            patch["metadata"] |= copy.deepcopy(self.random.choice(METADATA))
        return patch

    def operation(self, current):
        """Return one operation of a JSON patch."""
        random, place, value, schema = self.random, [], current, self.schema
        while isinstance(value, dict | list) and value and random.random() < 0.8:
            key = random.choice(sorted(value) if isinstance(value, dict) else range(len(value)))
            value, schema = value[key], self.schemas.field(schema, key)
            place.append(key)
        if random.random() < 0.2:
            place.append(random.choice(("-", "0", "a", "unknown", "01")))
        pointer = "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in place)
        name = random.choice(("add", "replace", "replace", "remove", "test", "copy", "move", "x"))
        operation = {"op": name, "path": pointer}
        if name in {"copy", "move"}:
            operation["from"] = random.choice(("/metadata/labels", "/metadata/name", "/spec", "/unknown"))
        elif name != "remove":
            operation["value"] = self.schemas.value(random, schema, 1) if random.random() < 0.7 else value
        return operation

    def mutated(self, body, counts):
        return mutated(self.random, body, self.schemas, self.schema, self.random.choice(counts))


def _read(random, path, options):
    return request("GET", path, random.choice(options), headers={"Accept": random.choice(ACCEPTS)})


def accepted_bodies(*, tables: bool = True):
    """Return bodies that a real server has accepted, by their request path; `tables`: also changed ones."""
    found = defaultdict(dict)
    files = [*GOLDEN.glob("*.jsonl"), *([] if tables else GOLDEN.parent.glob("rights/*.jsonl"))]
    for file in sorted(files):
        if not tables and file.stem in {"validation", "unknown-fields"}:
            continue
        for line in file.read_text().splitlines():
            for step in json.loads(line)["steps"]:
                request, response = step["request"], step.get("response") or {}
                body = request.get("body")
                if (
                    request.get("method") == "POST"
                    and response.get("status") == 201
                    and isinstance(body, dict)
                    and not re.search(r"\$\{\d", request["path"] + json.dumps(body))
                ):
                    found[request["path"].partition("?")[0]][json.dumps(body, sort_keys=True)] = body
    recorded = {path: [*bodies.values()] for path, bodies in found.items()}
    return copy.deepcopy(BODIES) | recorded


def request(method, path, options="", body=None, *, content="", headers=None):
    request = {"method": method, "path": f"{path}?{options}" if options else path}
    if body is not None:
        request["body"] = body
    headers = {"Content-Type": content} if content else headers
    return request | {"headers": headers} if headers else request


def _difference(old, new):
    """Return the merge patch from one to the other; null removes."""
    patch = {key: None for key in old if key not in new}
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            if inner := _difference(old[key], value):
                patch[key] = inner
        elif key not in old or old[key] != value:
            patch[key] = value
    return patch
