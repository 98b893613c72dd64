"""What may be done with each resource, as OpenAPI's paths and operations."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource, Subresource

_LIST_PARAMETERS: Final = (
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
)
_WRITE_PARAMETERS: Final = (("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"))
_DELETE_PARAMETERS: Final = (
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
)
_OPERATIONS: Final[Mapping[str, tuple[str, str, Sequence[tuple[str, str]]]]] = {
    # verb: method, x-kubernetes-action, parameters
    "list": ("get", "list", _LIST_PARAMETERS),
    "create": ("post", "post", _WRITE_PARAMETERS),
    "deletecollection": ("delete", "deletecollection", (*_LIST_PARAMETERS, *_DELETE_PARAMETERS)),
    "get": ("get", "get", ()),
    "update": ("put", "put", _WRITE_PARAMETERS),
    "patch": ("patch", "patch", (*_WRITE_PARAMETERS, ("force", "boolean"))),
    "delete": ("delete", "delete", _DELETE_PARAMETERS),
}
_COLLECTION: Final = ("list", "create", "deletecollection")
_ITEM: Final = ("get", "update", "patch", "delete")


class Writer:
    """Writes operations; `references` names the schema of a kind, or "" for one without."""

    def __init__(self, definitions: Mapping[tuple[str, str, str], str], prefix: str) -> None:
        self._definitions = definitions
        self._prefix = prefix

    def paths(self, rows: Iterable[Resource]) -> Tree:
        made: Tree = {}
        for row in rows:
            for path, namespaced in _folders(row):
                collection, item = f"{path}{row.name}", f"{path}{row.name}/{{name}}"
                scope = ("namespace",) if namespaced else ()
                if namespaced or not row.namespaced:
                    self._add(made, collection, scope, self._operations(row, None, _COLLECTION, row.verbs))
                    self._add(made, item, (*scope, "name"), self._operations(row, None, _ITEM, row.verbs))
                    for sub in row.subresources:
                        verbs = ("create", *_ITEM)
                        operations = self._operations(row, sub, verbs, sub.verbs)
                        self._add(made, f"{item}/{sub.name}", (*scope, "name"), operations)
                else:
                    self._add(made, collection, (), self._operations(row, None, ("list",), row.verbs))
        return made

    def _add(self, paths: Tree, path: str, names: Sequence[str], operations: Tree) -> None:
        if operations:
            parameters = [self._parameter(name, "string", where="path") for name in names]
            parameters.append(self._parameter("pretty", "string"))
            paths[path] = operations | {"parameters": parameters}

    def _operations(
        self, row: Resource, sub: Subresource | None, wanted: Sequence[str], verbs: Sequence[str]
    ) -> Tree:
        made: Tree = {}
        for verb in wanted:
            if verb in verbs:
                method, action, parameters = _OPERATIONS[verb]
                made[method] = self._operation(row, sub, verb, action, parameters)
        return made

    def _operation(
        self,
        row: Resource,
        sub: Subresource | None,
        verb: str,
        action: str,
        parameters: Sequence[tuple[str, str]],
    ) -> Tree:
        kind = (sub.kind if sub else "") or row.kind
        group, version = (sub.group_version if sub else None) or row.group_version
        answered = f"{kind}List" if verb == "list" else kind
        name = f"{verb}{_title(row.group)}{_title(row.version)}{kind}{_title(sub.name) if sub else ''}"
        return {
            "tags": [f"{row.group.partition('.')[0] or 'core'}_{row.version}"],
            "operationId": name,
            "description": f"{verb} {row.name}{'/' + sub.name if sub else ''}",
            "parameters": [self._parameter(*parameter) for parameter in parameters],
            "responses": {"200": self._response((group, version, answered))},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
        }

    def _parameter(self, name: str, kind: str, where: str = "query") -> Tree:
        required = {"required": True} if where == "path" else {}
        typed: Tree = (
            {"schema": {"type": kind, "uniqueItems": True}}
            if self._is_v3()
            else {"type": kind, "uniqueItems": True}
        )
        return {"name": name, "in": where} | required | typed

    def _response(self, gvk: tuple[str, str, str]) -> Tree:
        definition = self._definitions.get(gvk)
        if definition is None:
            return {"description": "OK"}
        schema = {"$ref": self._prefix + definition}
        body: Tree = (
            {"content": {"application/json": {"schema": schema}}} if self._is_v3() else {"schema": schema}
        )
        return {"description": "OK"} | body

    def _is_v3(self) -> bool:
        return self._prefix.startswith("#/components")


def _folders(row: Resource) -> Iterable[tuple[str, bool]]:
    root = f"/apis/{row.group}/{row.version}/" if row.group else f"/api/{row.version}/"
    yield root, False
    if row.namespaced:
        yield f"{root}namespaces/{{namespace}}/", True


def _title(text: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in text.partition(".")[0].split("-"))
