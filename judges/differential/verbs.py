"""Conversations about requests other than changed bodies: methods of subresources, options, collections, pages."""

import copy
from collections.abc import Generator, Iterator
from random import Random
from urllib.parse import quote

import yaml

from judges.differential.conversations import (
    APPLY,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Change,
    accepted_bodies,
    request,
)
from judges.differential.mutations import places
from judges.differential.options import (
    BODIES,
    CONNECTED,
    DELETED,
    FIELDS,
    LANGUAGES,
    LISTED,
    METHODS,
    NAMES,
    OPTIONS,
    OWNERS,
    SELECTORS,
    VALUES,
    WATCHED,
)

PATCHES = (MERGE, STRATEGIC, JSON_PATCH, APPLY)
STEPS = 16
"""Requests of one case, at most."""


def cases(seed: int, resources, schemas_of) -> Iterator[Generator[dict, dict, None]]:
    """Yield conversations without end; `resources` are keyed by their paths."""
    bodies = accepted_bodies()
    paths = sorted(path for path in bodies if path in resources)
    number = 0
    while True:
        random = Random(f"verbs/{seed}/{number}")
        path = random.choice(paths)
        resource = resources[path]
        schemas = schemas_of(resource.group, resource.version)
        schema = schemas.of_kind(resource.group, resource.version, resource.kind) or {}
        yield _Case(Change(random, schemas, schema), path, resource, bodies[path]).requests()
        number += 1


class _Case:
    """Create two objects of a kind, and send requests about them."""

    def __init__(self, change, path, resource, bodies):
        self.change, self.random = change, change.random
        self.path, self.resource, self.bodies = path, resource, bodies
        self.current, self.name, self.token = {}, "", ""

    def requests(self) -> Generator[dict, dict, None]:
        random = self.random
        for suffix in ("x", "y"):
            answer = yield self._create(suffix)
            if answer["status"] == 201 and (answer["body"].get("metadata") or {}).get("name"):
                self.current = answer["body"]
                self.name = self.current["metadata"]["name"]
        if not self.name:
            return
        for _ in range(STEPS):
            choices = (self._inner,) * 4 + (self._collection, self._list_request, self._page)
            choices += (
                self._directive,
                self._directive,
                self._apply_request,
                self._pointers,
                self._owners_request,
                self._bodies,
            )
            # A watch takes a second.
            sent = self._watch_request() if random.random() < 0.03 else random.choice(choices)()
            if random.random() < 0.15:
                sent["headers"] = sent.get("headers", {}) | {"Accept": random.choice(LANGUAGES)}
            answer = yield sent
            found = answer["body"]
            if answer["status"] == 200 and isinstance(found, dict):
                if found.get("kind") == self.resource.kind and found["metadata"].get("name") == self.name:
                    self.current = found
                self.token = (found.get("metadata") or {}).get("continue") or self.token

    def _create(self, suffix):
        body = copy.deepcopy(self.random.choice(self.bodies))
        metadata = body.setdefault("metadata", {})
        metadata["name"] = suffix if "${ns}" in self.path else f"${{ns}}-{suffix}"
        if body.get("kind") == "CustomResourceDefinition":
            metadata["name"] = f"things{suffix}.example.com"
        metadata["labels"] = {**(metadata.get("labels") or {}), "a": suffix}
        return request("POST", self.path, "", body)

    @property
    def _object_path(self):
        if self.random.random() < 0.06:
            return f"{self.path}/nope"
        return f"{self.path}/{self.name}"

    def _options(self):
        return self.random.choice(OPTIONS)

    def _inner(self):
        """Return a request with any method for any subresource, or for the object."""
        random = self.random
        known = [*self.resource.subresources, "", "", "status", "nope"]
        known += ["log", "exec", "attach", "portforward", "proxy"] if self.path.endswith("/pods") else []
        name = random.choice(known)
        path = f"{self._object_path}/{name}" if name else self._object_path
        if name in {"scale", "log"} and random.random() < 0.05:
            path += "/x"
        if name in CONNECTED:
            return request(random.choice(("GET", "GET", "POST", "PUT")), path, random.choice(CONNECTED[name]))
        method = random.choice(METHODS)
        if method in {"GET", "HEAD", "OPTIONS"}:
            return request(method, path, self._options())
        if method == "DELETE":
            return request(method, path, self._options(), copy.deepcopy(random.choice(DELETED)))
        body = self._inner_body(name)
        if method == "PATCH":
            language = random.choice(PATCHES)
            if language == JSON_PATCH:
                body = [self.change.operation(self.current)]
            options = (
                "fieldManager=applier" if language == APPLY and random.random() < 0.8 else self._options()
            )
            return request(method, path, options, body, content=language)
        return request(method, path, self._options(), body)

    def _inner_body(self, name):
        random = self.random
        if name in BODIES and random.random() < 0.85:
            return copy.deepcopy(random.choice(BODIES[name]))
        body = copy.deepcopy(self.current)
        body["metadata"].pop("managedFields", None)
        if random.random() < 0.5:
            body["metadata"].pop("resourceVersion", None)
        return self.change.mutated(body, (0, 0, 1, 2))

    def _selector_option(self):
        random = self.random
        if random.random() < 0.5:
            return f"labelSelector={quote(random.choice(SELECTORS))}"
        terms = [
            f"{random.choice(FIELDS)}{random.choice(('=', '==', '!='))}{random.choice(VALUES)}"
            for _ in range(random.choice((1, 1, 2)))
        ]
        return f"fieldSelector={quote(','.join(terms), safe='${}')}"

    def _collection(self):
        random = self.random
        choices = (self._selector_option(), self._options(), random.choice(LISTED))
        options = "&".join(random.sample(choices, random.choice((1, 1, 2))))
        if random.random() < 0.7:  # so that some remain
            options = "&".join(filter(None, (options, "dryRun=All")))
        return request("DELETE", self._collection_path, options, copy.deepcopy(random.choice(DELETED)))

    @property
    def _collection_path(self):
        if "${ns}" in self.path and self.random.random() > 0.05:
            return self.path
        # Of a cluster, where other conversations have objects too.
        return (
            f"{self.path}/"
            if self.random.random() < 0.1
            else f"{self.path.split('/${ns}')[0]}/{'${ns}'}/nope"
        )

    def _list_request(self):
        random = self.random
        # Together, they show which error is reported first, and which pages have more after them.
        choices = (self._selector_option(), random.choice(LISTED))
        options = "&".join(random.sample(choices, random.choice((1, 2))))
        path = self.path if random.random() < 0.85 else self.path.replace("/namespaces/${ns}", "")
        return request("GET", path, options)

    def _page(self):
        if not self.token:
            return request("GET", self.path, self.random.choice(("limit=1", "limit=1&resourceVersion=0")))
        options = self.random.choice(
            ("limit=1", "limit=5", "", "limit=1&labelSelector=a", "resourceVersion=1")
        )
        return request("GET", self.path, f"continue={quote(self.token)}&{options}")

    def _watch_request(self):
        random = self.random
        options = random.choice(WATCHED)
        if random.random() < 0.3:
            options += "&" + self._selector_option()
        if "${ns}" not in self.path:
            options += "&fieldSelector=metadata.name%3D" + self.name
        return request("GET", self.path, f"watch=true&{options}")

    def _directive(self):
        """Return a strategic merge patch with directives at random places."""
        random, current = self.random, self.current
        found = [place for place in places(current) if isinstance(_path_value(current, place), dict | list)]
        found = [place for place in found if place[:2] != ("metadata", "managedFields")]
        place = random.choice(found)
        keys = [key for key in place if not isinstance(key, int)]
        value = copy.deepcopy(
            _path_value(current, place[: len(keys)] if not isinstance(place[-1], int) else place)
        )
        patch = {}
        if isinstance(value, list):
            patch = self._list_directive(keys[-1] if keys else "a", value)
        elif isinstance(value, dict):
            patch = {} if not keys else {keys[-1]: self._object_directive(value)}
        for key in reversed(keys[:-1]):
            patch = {key: patch}
        return request(
            "PATCH", self._object_path, self._options(), patch or {"$patch": "replace"}, content=STRATEGIC
        )

    def _object_directive(self, value):
        random = self.random
        return random.choice(
            (
                {"$patch": "delete"},
                {"$patch": "replace"} | value,
                {"$patch": "x"},
                {"$patch": 1},
                {"$retainKeys": [*value][:1]} | dict([*value.items()][:1]),
                {"$retainKeys": [*value][:1]} | value,
                {"$retainKeys": "x"},
                {"$patch": "merge"} | value,
                {"$unknown": 1},
            )
        )

    def _list_directive(self, name, value):
        random = self.random
        first = value[0] if value else {}
        element = dict([*first.items()][:2]) if isinstance(first, dict) else first
        return random.choice(
            (
                {name: [{"$patch": "delete"} | element]} if isinstance(element, dict) else {name: value},
                {name: [{"$patch": "replace"}, *value]},
                {name: [{"$patch": "replace"}]},
                {name: [{"$patch": "x"}, element]},
                {f"$setElementOrder/{name}": value[::-1]},
                {f"$setElementOrder/{name}": value[::-1], name: value[:1]},
                {f"$setElementOrder/{name}": [], name: value[:1]},
                {f"$setElementOrder/{name}": "x"},
                {f"$deleteFromPrimitiveList/{name}": value[:1]},
                {f"$deleteFromPrimitiveList/{name}": "x", name: []},
                {name: [{"a": "b"}]},
                {name: value + value},
                {name: None},
            )
        )

    def _apply_request(self):
        random = self.random
        body = self.change.apply_configuration(self.current)
        if random.random() < 0.2:
            body["metadata"] = body.get("metadata") or {}
            body["metadata"]["managedFields"] = random.choice(([], [{}], None))
        inner = random.choice(("", "", "", *(f"/{name}" for name in self.resource.subresources)))
        manager = random.choice(("one", "two", "golden", "x" * 129, ""))
        options = [
            f"fieldManager={manager}",
            *[random.choice(("force=true", "force=false", "force=", "dryRun=All"))],
        ]
        if random.random() < 0.2:
            return request(
                "PATCH",
                self._object_path + inner,
                "&".join(options),
                body,
                content=random.choice(PATCHES[:2]),
            )
        return request("PATCH", self._object_path + inner, "&".join(options), body, content=APPLY)

    def _pointers(self):
        """Return a JSON patch whose paths are those of the object, or odd."""
        random, current = self.random, self.current
        known = [
            "/" + "/".join(str(key).replace("~", "~0").replace("/", "~1") for key in place)
            for place in places(current)
        ]
        odd = (
            "",
            "/",
            "a",
            "/a~",
            "/a~2b",
            "/metadata//x",
            "/metadata/labels/-",
            "/spec/01",
            "/metadata/labels/a/b",
        )
        pointer = lambda: random.choice((*[random.choice(known) for _ in range(3)], random.choice(odd)))  # noqa: E731
        operations = []
        for _ in range(random.choice((1, 1, 2, 3))):
            one = {
                "op": random.choice(("test", "move", "copy", "add", "replace", "remove")),
                "path": pointer(),
            }
            if one["op"] in {"move", "copy"}:
                one["from"] = pointer()
            elif one["op"] != "remove" and random.random() < 0.9:
                value = random.choice((None, {}, [], "x", 1, "current"))
                one["value"] = _pointer_value(current, one["path"]) if value == "current" else value
            operations.append(one)
        return request("PATCH", self._object_path, self._options(), operations, content=JSON_PATCH)

    def _owners_request(self):
        random = self.random
        owners = copy.deepcopy(random.sample(OWNERS, random.choice((1, 2, 2, 3))))
        metadata = {"ownerReferences": owners}
        if random.random() < 0.5:
            return request(
                "PATCH",
                self._object_path,
                self._options(),
                {"metadata": metadata},
                content=random.choice(PATCHES[:2]),
            )
        body = copy.deepcopy(self.random.choice(self.bodies))
        body["metadata"] = {**(body.get("metadata") or {}), **metadata, "generateName": random.choice(NAMES)}
        body["metadata"].pop("name", None)
        return request("POST", self.path, "dryRun=All" if random.random() < 0.9 else "", body)

    def _bodies(self):
        """Return the object in YAML, or in an invalid format."""
        random = self.random
        text = yaml.safe_dump(self._inner_body(""), allow_unicode=True)
        text = random.choice(
            (text, text, text + "---\n" + text, text + "kind: X\n", "a: [", "- x\n", "", "a: &b [*b]\n")
        )
        kind = random.choice(
            ("application/yaml", "application/yaml", "text/yaml", "application/x", "application/cbor", "")
        )
        headers = {"Content-Type": kind}
        method, path = random.choice(
            (("PUT", self._object_path), ("POST", self.path), ("PUT", f"{self._object_path}/status"))
        )
        return {"method": method, "path": f"{path}?{self._options()}", "raw": text, "headers": headers}


def _path_value(value, place):
    for key in place:
        value = value[key]
    return value


def _pointer_value(value, pointer):
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            return None
    return copy.deepcopy(value)
