"""Topics of `rights`: each has rights, of which roles get some, objects of the administrator, and requests that need rights."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import ClassVar

from judges.differential.conversations import APPLY, JSON_PATCH, MERGE, STRATEGIC, accepted_bodies
from judges.differential.options import BODIES

RBAC = "/apis/rbac.authorization.k8s.io/v1"
VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
WRITES = ["create", "update", "patch", "delete"]
HERE = "/api/v1/namespaces/${ns}"
THINGS = "/apis/rights.example/v1/namespaces/${ns}/things"
WITHOUT = (
    *("admissionregistration", "apiextensions", "apiregistration", "flowcontrol"),
    *("authentication", "authorization", "/pods/p/", "/default/token"),
)
"""Parts of the paths of kinds that would change the requests of other conversations, or are a topic of their own."""
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.rights.example"},
    "spec": {
        "group": "rights.example",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}}
                },
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
            }
        ],
    },
}


@dataclass(frozen=True)
class KindRow:
    path: str
    subresources: tuple[str, ...]
    bodies: list[dict]


@dataclass(frozen=True)
class Conversation:
    number: int
    kinds: list[KindRow]


@cache
def recorded_bodies() -> dict[str, list[dict]]:
    """Return bodies that a real server has accepted, by their request path; they must not be changed."""
    return accepted_bodies()


def kinds(resources) -> list[KindRow]:
    """Return the kinds of objects that a server has accepted."""
    bodies = {
        path: found
        for path, found in recorded_bodies().items()
        if path in resources and not any(part in path for part in WITHOUT)
    }
    rows = [KindRow(path, resources[path].subresources, bodies[path]) for path in sorted(bodies)]
    thing = {"apiVersion": "rights.example/v1", "kind": "Thing", "metadata": {}, "spec": {"replicas": 1}}
    return [*rows, KindRow(THINGS, ("status", "scale"), [thing])]


def right(groups, resources, verbs, names=(), **more):
    return {
        "groups": groups.split(",") if groups else [""],
        "resources": resources.split(),
        "verbs": [*verbs],
        "names": [*names],
    } | more


def request(method, path, body=None, content="", **headers):
    found = {"method": method, "path": path}
    if body is not None:
        found["body"] = body
    if content:
        headers["Content-Type"] = content
    return found | ({"headers": headers} if headers else {})


class Topic:
    """Rights, and requests that need them."""

    rights: ClassVar[Sequence[dict]] = ()

    def __init__(self, random: Random, conversation: Conversation) -> None:
        self.random = random
        self.number = conversation.number

    def setup(self):
        """Return the requests of the administrator that create what the users' requests are about."""
        return []

    def request(self, random: Random) -> dict:
        raise NotImplementedError

    def record(self, sent: dict, answer: dict) -> None:
        """Keep what later requests need of a response."""


class KindTopic(Topic):
    """Every verb of a kind and its subresources, for existing and missing objects."""

    def __init__(self, random, conversation):
        super().__init__(random, conversation)
        self.row = random.choice(conversation.kinds)
        self.path = self.row.path
        self.plural = self.path.rpartition("/")[2]
        group = "" if self.path.startswith("/api/") else self.path.split("/")[2]
        self.names = [self._name(suffix) for suffix in ("x", "y", "z")]
        self.body = copy.deepcopy(random.choice(self.row.bodies))
        self.current = {}
        inner = [f"{self.plural}/{name}" for name in self.row.subresources]
        anything = ["*", "*/scale", "*/status", f"{self.plural}/*"]
        plain = {"groups": [group], "names": self.names[:2]}
        self.rights = [
            plain | {"resources": [self.plural], "verbs": VERBS},
            plain | {"resources": [self.plural], "verbs": ["update", "patch", "create"]},
            plain | {"resources": [self.plural, *inner, *anything], "verbs": VERBS},
            plain
            | {"resources": [*inner, self.plural, "*/scale"], "verbs": ["get", "update", "patch", "create"]},
        ]

    def _name(self, suffix):
        return suffix if "${ns}" in self.path else f"${{ns}}-{suffix}"

    def setup(self):
        return [request("POST", self.path, self._object(self.names[0]))]

    def record(self, sent, answer):
        body = answer["body"]
        if answer["status"] in (200, 201) and isinstance(body, dict) and "dryRun" not in sent["path"]:
            metadata = body.get("metadata") or {}
            if metadata.get("uid") and body.get("kind") == self.body.get("kind", body.get("kind")):
                self.current[metadata.get("name")] = body

    def _object(self, name):
        body = copy.deepcopy(self.body)
        body["metadata"] = {**(body.get("metadata") or {}), "name": name}
        body["metadata"].pop("generateName", None)
        return body

    def _version(self, name):
        """Return an object's current text, with its resourceVersion."""
        current = self.current.get(name)
        if current is None or self.random.random() < 0.4:
            return self._object(name)
        body = copy.deepcopy(current)
        body["metadata"].pop("managedFields", None)
        return body

    def request(self, random):
        name = random.choice((self.names[0], *self.names))
        if self.row.subresources and random.random() < 0.35:
            return self._inner(random, f"{self.path}/{name}", name)
        dry = random.choice(("", "", "dryRun=All"))
        one = f"{self.path}/{name}"
        path = self.path
        if random.random() < 0.1:
            path = path.replace("namespaces/${ns}/", "")
        selected = random.choice((f"fieldSelector=metadata.name%3D{name}", "labelSelector=nothing%3Dhere"))
        return random.choice(
            (
                lambda: request("GET", one),
                lambda: request("GET", f"{path}?{random.choice(('', 'limit=1', selected))}"),
                lambda: request("GET", f"{path}?watch=1&resourceVersion=x&{selected}"),
                lambda: request("POST", f"{path}?{dry}", self._object(name)),
                lambda: request("PUT", f"{one}?{dry}", self._version(name)),
                lambda: request("PUT", f"{one}?{dry}", self._version(name)),
                lambda: self._patch(random, one, name, dry),
                lambda: self._patch(random, one, name, dry),
                lambda: request("DELETE", f"{one}?{dry}"),
                lambda: request("DELETE", f"{self.path}?{selected}&{dry}"),
            )
        )()

    def _patch(self, random, path, name, dry):
        content = random.choice((MERGE, STRATEGIC, JSON_PATCH, APPLY, APPLY, APPLY))
        if content == JSON_PATCH:
            body = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
        elif content == APPLY:
            body = {"apiVersion": self._api_version(), "kind": self.body.get("kind")} | self._object(name)
            return request("PATCH", f"{path}?fieldManager=f&force=true&{dry}", body, content)
        else:
            body = {"metadata": {"labels": {"a": random.choice("bcd")}}}
        return request("PATCH", f"{path}?{dry}", body, content)

    def _api_version(self):
        _, _, version, *rest = self.path.split("/")
        return version if self.path.startswith("/api/") else f"{version}/{rest[0]}"

    def _inner(self, random, path, name):
        inner = random.choice(self.row.subresources)
        path = f"{path}/{inner}"
        dry = random.choice(("", "dryRun=All"))
        body = copy.deepcopy(random.choice(BODIES[inner][:2])) if inner in BODIES else self._version(name)
        method = random.choice(
            ("GET", "POST") if inner in ("eviction", "binding", "token") else ("GET", "PUT")
        )
        if method == "GET":
            return request(random.choice(("GET", "DELETE")), path)
        if method == "PUT" and random.random() < 0.5:
            body = (
                {"spec": {"replicas": 2}} if inner == "scale" else {"metadata": {"annotations": {"a": "b"}}}
            )
            if random.random() < 0.4 and inner != "scale":
                body = {"apiVersion": self._api_version(), "kind": self.body.get("kind")} | self._object(name)
                return request("PATCH", f"{path}?fieldManager=f&force=true&{dry}", body, APPLY)
            return request("PATCH", f"{path}?{dry}", body, random.choice((MERGE, STRATEGIC)))
        return request(method, f"{path}?{dry}", body)
