"""The kinds of a server and their schemas, from its discovery and OpenAPI documents."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.discovery import ACCEPT, ROOTS
from mockube.client.verbs import Client

_REFERENCE: Final = "#/components/schemas/"
_KINDS: Final = "x-kubernetes-group-version-kind"
_INT_OR_STRING: Final = "int-or-string"
_CIRCULAR: Final = {"type": "object"}


class GroupVersionKind(NamedTuple):
    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"


KindsByName = Mapping[tuple[str, str], Sequence[GroupVersionKind]]
"""The kinds of all groups, by version and by the plural or singular name of a resource."""


async def kinds_of(client: Client) -> KindsByName:
    """Read the kinds that a server has."""
    return read_kinds([await client.raw("GET", root, accept=ACCEPT) for root in ROOTS])


def read_kinds(documents: Sequence[ReadOnlyTree]) -> KindsByName:
    """Return the kinds in documents of aggregated discovery."""
    kinds: defaultdict[tuple[str, str], list[GroupVersionKind]] = defaultdict(list)
    for document in documents:
        for group in document.get("items") or ():
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                for resource in version.get("resources") or ():
                    kind = GroupVersionKind(name, version["version"], resource["responseKind"]["kind"])
                    for resource_name in {resource["resource"], resource.get("singularResource", "")}:
                        kinds[version["version"], resource_name].append(kind)
    return kinds


class SchemaResolver:
    """The schemas of kinds, in which references are replaced by the referenced schemas."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._paths: ReadOnlyTree | None = None
        self._documents: dict[str, Mapping[str, Any]] = {}

    async def of(self, kind: GroupVersionKind) -> ReadOnlyTree | None:
        """Return the schema of a kind; None if no document has the kind."""
        path = f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"
        if path not in self._documents:
            self._documents[path] = await self._fetch(path)
        return find_schema(self._documents[path], kind)

    async def _fetch(self, path: str) -> Mapping[str, Any]:
        if self._paths is None:
            self._paths = (await self._client.raw("GET", "/openapi/v3"))["paths"]
        if path not in self._paths:
            return {}
        document = await self._client.raw("GET", self._paths[path]["serverRelativeURL"])
        schemas: Mapping[str, Any] = (document.get("components") or {}).get("schemas") or {}
        return schemas


def find_schema(schemas: Mapping[str, Any], kind: GroupVersionKind) -> ReadOnlyTree | None:
    for name, schema in schemas.items():
        for entry in schema.get(_KINDS) or ():
            if (entry.get("group", ""), entry.get("version"), entry.get("kind")) == kind:
                return _resolve(schema, schemas, (name,))
    return None


def _resolve(schema: ReadOnlyTree, schemas: Mapping[str, Any], parents: tuple[str, ...]) -> ReadOnlyTree:
    """Return a schema without references; a recursive reference becomes any object."""
    name = next(_references(schema), None)
    if name is not None:
        if name in parents:
            return _CIRCULAR
        schema, parents = schemas.get(name, {}), (*parents, name)
    result = dict(schema)
    if schema.get("format") == _INT_OR_STRING:
        result[f"x-kubernetes-{_INT_OR_STRING}"] = True
    if properties := schema.get("properties"):
        result["properties"] = {key: _resolve(value, schemas, parents) for key, value in properties.items()}
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), Mapping):
            result[part] = _resolve(schema[part], schemas, parents)
    return result


def _references(schema: ReadOnlyTree) -> Iterator[str]:
    """Yield the names of the schemas that a schema refers to, directly or in `allOf` beside a description."""
    if "$ref" in schema:
        yield schema["$ref"].removeprefix(_REFERENCE)
    for part in schema.get("allOf") or ():
        yield from _references(part)
