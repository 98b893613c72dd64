"""The OpenAPI paths and operations of each resource.

They have the form of version 3, which `paths_v2.py` converts to version 2.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from msgspec import Struct

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource, Subresource

from .order import METHODS, ordered_operation
from .schemas import V3, Definitions

NamesByKind: TypeAlias = Mapping[tuple[str, str, str], str]
"""The name of the definition of each group, version and kind."""

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_CORE: Final = "io.k8s.api.core.v1."
PRODUCES: Final = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_CUSTOM: Final = ("application/json", "application/yaml")
"""The media types of custom objects."""
_WATCHES: Final = (
    *PRODUCES,
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
)
_APPLY: Final = "application/apply-patch+yaml"
_PATCHES: Final = (
    _APPLY,
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_PRETTY: Final = (
    "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a browser or "
    "command-line HTTP tool (curl and wget)."
)
_NAMESPACE: Final = "object name and auth scope, such as for teams and projects"
_WATCH_LIST: Final = "watch individual changes to a list of {}. deprecated: use the 'watch' parameter with a list operation instead."
_WATCH_ITEM: Final = (
    "watch changes to an object of kind {}. deprecated: use the 'watch' parameter with a list operation instead, "
    "filtered to a single item with the 'fieldSelector' parameter."
)
_OPERATION_VERBS: Final = {"get": "read", "update": "replace"}
"""Verbs that have another name in operations."""
_ACTIONS: Final = {"create": "post", "update": "put"}
_METHODS: Final = {"list": "get", "create": "post", "update": "put", "deletecollection": "delete"}
_OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "list": (f"{META}ListOptions",),
    "create": (f"{META}CreateOptions",),
    "update": (f"{META}UpdateOptions",),
    "patch": (f"{META}PatchOptions",),
    "delete": (f"{META}DeleteOptions",),
    "deletecollection": (f"{META}ListOptions", f"{META}DeleteOptions"),
}
_TYPE_META: Final = frozenset({"apiVersion", "kind"})


class _Endpoint(Struct, frozen=True):
    """The path of a resource's operations, and the parts of their ids."""

    row: Resource
    subresource: Subresource | None = None
    namespaced: bool = False

    @property
    def title(self) -> str:
        return group_title(self.row.group) + _title(self.row.version)

    @property
    def noun(self) -> str:
        suffix = _title(self.subresource.name) if self.subresource else ""
        return f"{'Namespaced' if self.namespaced else ''}{self.row.kind}{suffix}"

    @property
    def gvk(self) -> tuple[str, str, str]:
        """The group, version and kind of the bodies of requests and responses."""
        group, version = (self.subresource and self.subresource.group_version) or self.row.group_version
        return group, version, (self.subresource and self.subresource.kind) or self.row.kind

    @property
    def group_version_kind(self) -> tuple[str, str, str]:
        """The group, version and kind of the operations."""
        return (*self.row.group_version, self.row.kind) if self.row.custom else self.gvk

    @property
    def types(self) -> Sequence[str]:
        return _CUSTOM if self.row.custom else PRODUCES

    @property
    def body_types(self) -> Sequence[str]:
        return _CUSTOM if self.row.custom else ("*/*",)


class PathBuilder(Struct):
    """Builds paths. Deletions of the resources in `returned` return the object."""

    definitions: Definitions
    kinds: NamesByKind
    returned: frozenset[GroupResource] = frozenset()

    def paths(self, rows: Iterable[Resource]) -> Tree:
        paths: Tree = {}
        for row in rows:
            for path, operations in self._resource_paths(row):
                if operations:
                    paths[path] = _share_parameters(operations)
        return paths

    def page(
        self, tag: str, name: str, description: str, *, answer: str = "", types: Sequence[str] = PRODUCES
    ) -> Tree:
        """Return the path item of a path without a kind: it returns a definition, or text."""
        content = self._content(answer, types) if answer else _text(types)
        operation = {"tags": [tag], "description": description, "operationId": name}
        return {"get": operation | {"responses": _responses({"200": content})}}

    def _resource_paths(self, row: Resource) -> Iterator[tuple[str, Tree]]:
        root = _root(row)
        scope = "namespaces/{namespace}/" if row.namespaced else ""
        endpoint = _Endpoint(row, namespaced=row.namespaced)
        base = f"{root}{scope}{row.name}"
        if row.namespaced and "list" in row.verbs:
            all_namespaces = _Endpoint(row)
            name = f"list{all_namespaces.title}{row.kind}ForAllNamespaces"
            yield f"{root}{row.name}", {"get": self._list(all_namespaces, name)}
        yield base, self._operations(endpoint, ("list", "create", "deletecollection"), row.verbs)
        yield f"{base}/{{name}}", self._operations(endpoint, ("get", "update", "patch", "delete"), row.verbs)
        for subresource in row.subresources:
            yield from self._subresource_paths(f"{base}/{{name}}", subresource, row)
        if "watch" in row.verbs and not row.custom:
            yield from self._watches(endpoint, root, scope)

    def _subresource_paths(
        self, item: str, subresource: Subresource, row: Resource
    ) -> Iterator[tuple[str, Tree]]:
        endpoint = _Endpoint(row, subresource, row.namespaced)
        if subresource.kind.endswith("Options"):
            methods = METHODS if subresource.name == "proxy" else ("get", "post")
            yield f"{item}/{subresource.name}", self._connect_paths(endpoint, methods, "")
            if subresource.name == "proxy":
                below = f"{item}/{subresource.name}/{{path}}"
                yield below, self._connect_paths(endpoint, methods, "WithPath")
        else:
            verbs = ("get", "create", "update", "patch", "delete")
            yield f"{item}/{subresource.name}", self._operations(endpoint, verbs, subresource.verbs)

    def _watches(self, endpoint: _Endpoint, root: str, scope: str) -> Iterator[tuple[str, Tree]]:
        row = endpoint.row
        if row.namespaced:
            all_namespaces = f"watch{endpoint.title}{row.kind}ListForAllNamespaces"
            operation = self._watch(_Endpoint(row), "watchlist", all_namespaces, named=False)
            yield f"{root}watch/{row.name}", {"get": operation}
        base = f"{root}watch/{scope}{row.name}"
        list_watch = self._watch(
            endpoint, "watchlist", f"watch{endpoint.title}{endpoint.noun}List", named=False
        )
        yield base, {"get": list_watch}
        if "get" in row.verbs:
            single_watch = self._watch(endpoint, "watch", f"watch{endpoint.title}{endpoint.noun}", named=True)
            yield f"{base}/{{name}}", {"get": single_watch}

    def _watch(self, endpoint: _Endpoint, action: str, operation: str, *, named: bool) -> Tree:
        description = (_WATCH_ITEM if named else _WATCH_LIST).format(endpoint.row.kind)
        content = {"200": self._content(f"{META}WatchEvent", _WATCHES)}
        parameters = [*self._scope_parameters(endpoint, named=named), *self._query("list")]
        return self._operation(endpoint, action, operation, description, parameters, content)

    def _list(self, endpoint: _Endpoint, name: str) -> Tree:
        row = endpoint.row
        watched = "watch" in row.verbs and not row.custom
        description = f"list {'or watch ' if watched else ''}objects of kind {row.kind}"
        types = _CUSTOM if row.custom else _WATCHES
        content = self._kind_content((row.group, row.version, row.list_kind), types)
        parameters = [*self._scope_parameters(endpoint, named=False), *self._query("list")]
        return self._operation(endpoint, "list", name, description, parameters, {"200": content})

    def _operations(self, endpoint: _Endpoint, path_verbs: Sequence[str], verbs: Sequence[str]) -> Tree:
        builders: Mapping[str, Callable[[_Endpoint], Tree]] = {
            "list": lambda endpoint: self._list(endpoint, f"list{endpoint.title}{endpoint.noun}"),
            "deletecollection": self._delete_collection,
            "delete": self._delete,
            "get": self._read,
            "create": partial(self._write, verb="create", codes=("200", "201", "202")),
            "update": partial(self._write, verb="update", codes=("200", "201")),
            "patch": partial(self._write, verb="patch", codes=("200", "201")),
        }
        return {_METHODS.get(verb, verb): builders[verb](endpoint) for verb in path_verbs if verb in verbs}

    def _read(self, endpoint: _Endpoint) -> Tree:
        subresource, kind = endpoint.subresource, endpoint.row.kind
        part = f"{subresource.name} of " if subresource else ""
        description = f"read {part}the specified {kind}"
        parameters = [*self._scope_parameters(endpoint, named=True)]
        if endpoint.row.custom:
            parameters += (
                parameter for parameter in self._query("list") if parameter["name"] == "resourceVersion"
            )
        content = self._kind_content(endpoint.gvk, endpoint.types)
        if subresource and subresource.name == "log":
            parameters += self._fields((f"{_CORE}PodLogOptions",))
            types = (
                "application/json",
                "application/vnd.kubernetes.protobuf",
                "application/yaml",
                "text/plain",
            )
            content = _text(types)
        name = f"read{endpoint.title}{endpoint.noun}"
        return self._operation(endpoint, "get", name, description, parameters, {"200": content})

    def _write(self, endpoint: _Endpoint, *, verb: str, codes: Sequence[str]) -> Tree:
        subresource, kind, is_new = endpoint.subresource, endpoint.row.kind, verb == "create"
        word = "partially update" if verb == "patch" else _OPERATION_VERBS.get(verb, verb)
        description = f"{word} the specified {kind}"
        if subresource:
            description = f"{word} {subresource.name} of {'a' if is_new else 'the specified'} {kind}"
        elif is_new:
            description = f"create {_article(kind)}{kind}"
        content = self._kind_content(endpoint.gvk, endpoint.types)
        body = self._kind_content(endpoint.gvk, endpoint.body_types)
        if verb == "patch":
            body = self._content(f"{META}Patch", _PATCHES[:3] if endpoint.row.custom else _PATCHES)
            codes = codes[:1] if endpoint.row.custom else codes
        named = not is_new or subresource is not None
        operation = self._operation(
            endpoint,
            _ACTIONS.get(verb, verb),
            f"{_OPERATION_VERBS.get(verb, verb)}{endpoint.title}{endpoint.noun}",
            description,
            [*self._scope_parameters(endpoint, named=named), *self._query(verb)],
            dict.fromkeys(codes, content),
        )
        return operation | {"requestBody": {"content": body, "required": True}}

    def _delete(self, endpoint: _Endpoint) -> Tree:
        row = endpoint.row
        returns_object = row.group_resource in self.returned
        answer = self._content(f"{META}Status", endpoint.types)
        content = self._kind_content(endpoint.gvk) if returns_object else answer
        operation = self._operation(
            endpoint,
            "delete",
            f"delete{endpoint.title}{endpoint.noun}",
            f"delete {_article(row.kind)}{row.kind}",
            [*self._scope_parameters(endpoint, named=True), *self._query("delete")],
            {"200": content, "202": content},
        )
        body = self._content(f"{META}DeleteOptions", endpoint.body_types)
        return operation | {"requestBody": {"content": body}}

    def _delete_collection(self, endpoint: _Endpoint) -> Tree:
        query_verb = "list" if endpoint.row.custom else "deletecollection"
        operation = self._operation(
            endpoint,
            "deletecollection",
            f"delete{endpoint.title}Collection{endpoint.noun}",
            f"delete collection of {endpoint.row.kind}",
            [*self._scope_parameters(endpoint, named=False), *self._query(query_verb)],
            {"200": self._content(f"{META}Status", endpoint.types)},
        )
        if endpoint.row.custom:
            return operation
        body = self._content(f"{META}DeleteOptions", endpoint.body_types)
        return operation | {"requestBody": {"content": body}}

    def _connect_paths(self, endpoint: _Endpoint, methods: Sequence[str], suffix: str) -> Tree:
        assert endpoint.subresource is not None
        operations: Tree = {}
        parameters = [_path_parameter("name", f"name of the {endpoint.gvk[2]}")]
        if endpoint.namespaced:
            parameters.append(_path_parameter("namespace", _NAMESPACE))
        if suffix:
            parameters.append(_path_parameter("path", "path to the resource"))
        parameters += self._fields((f"{_CORE}{endpoint.gvk[2]}",))
        for method in methods:
            operation = self._operation(
                endpoint,
                "connect",
                f"connect{endpoint.title}{_title(method)}{endpoint.noun}{suffix}",
                f"connect {method.upper()} requests to {endpoint.subresource.name} of {endpoint.row.kind}",
                parameters,
                {"200": _text(("*/*",))},
            )
            operations[method] = operation
        return operations

    def _operation(
        self,
        endpoint: _Endpoint,
        action: str,
        name: str,
        description: str,
        parameters: Sequence[Tree],
        contents: Tree,
    ) -> Tree:
        group, version, kind = endpoint.group_version_kind
        return {
            "tags": [f"{group_tag(endpoint.row.group)}_{endpoint.row.version}"],
            "description": description,
            "operationId": name,
            "parameters": sorted(parameters, key=lambda parameter: (parameter["name"], parameter["in"])),
            "responses": _responses(contents),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
        }

    def _scope_parameters(self, endpoint: _Endpoint, *, named: bool) -> Iterator[Tree]:
        if named:
            yield _path_parameter("name", f"name of the {endpoint.group_version_kind[2]}")
        if endpoint.namespaced:
            yield _path_parameter("namespace", _NAMESPACE)
        yield _parameter("pretty", "string", _PRETTY)

    def _query(self, verb: str) -> Iterator[Tree]:
        for parameter in self._fields(_OPTIONS[verb]):
            if verb != "deletecollection" or parameter["name"] not in {"allowWatchBookmarks", "watch"}:
                yield parameter

    def _fields(self, names: Sequence[str]) -> Iterator[Tree]:
        for name in names:
            for key, schema in self.definitions.fields(name).items():
                if key not in _TYPE_META and "type" in schema:
                    kind = schema.get("items", schema)["type"]  # a list is published as a single value
                    yield _parameter(key, kind, schema.get("description", ""))

    def _kind_content(self, gvk: tuple[str, str, str], types: Sequence[str] = PRODUCES) -> Tree:
        name = self.kinds.get(gvk)
        return self._content(name, types) if name else {}

    def _content(self, name: str, types: Sequence[str]) -> Tree:
        return {kind: {"schema": {"$ref": V3 + name}} for kind in sorted(types)}


def group_title(group: str) -> str:
    """Return the name of a group in operation ids: RbacAuthorization for `rbac.authorization.k8s.io`."""
    return "".join(map(_title, group.removesuffix(".k8s.io").split("."))) if group else "Core"


def group_tag(group: str) -> str:
    title = group_title(group)
    return title[:1].lower() + title[1:]


def _title(text: str) -> str:
    return text[:1].upper() + text[1:]


def _article(kind: str) -> str:
    if kind.endswith("s") and not kind.endswith("ss"):
        return ""
    return "an " if kind[:1] in "AEIOU" else "a "


def _root(row: Resource) -> str:
    return f"/apis/{row.group}/{row.version}/" if row.group else f"/api/{row.version}/"


def _text(types: Sequence[str]) -> Tree:
    return {kind: {"schema": {"type": "string"}} for kind in sorted(types)}


def _parameter(name: str, kind: str, description: str) -> Tree:
    schema = {"type": kind, "uniqueItems": True}
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _path_parameter(name: str, description: str) -> Tree:
    schema = {"type": "string", "uniqueItems": True}
    return {"name": name, "in": "path", "description": description, "required": True, "schema": schema}


def _responses(contents: Tree) -> Tree:
    descriptions = {"200": "OK", "201": "Created", "202": "Accepted"}
    responses = {
        code: {"description": descriptions[code]} | ({"content": content} if content else {})
        for code, content in contents.items()
    }
    return responses | {"401": {"description": "Unauthorized"}}


def _share_parameters(operations: Tree) -> Tree:
    """Return the path item with the parameters that all operations share."""
    each = [operation["parameters"] for operation in operations.values()]
    shared = [parameter for parameter in each[0] if all(parameter in others for others in each[1:])]
    path_item: Tree = {}
    for method in METHODS:
        if method in operations:
            own_parameters = [
                parameter for parameter in operations[method]["parameters"] if parameter not in shared
            ]
            path_item[method] = ordered_operation(operations[method] | {"parameters": own_parameters})
    return path_item | ({"parameters": shared} if shared else {})
