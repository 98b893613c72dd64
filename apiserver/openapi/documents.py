"""Whole documents: one for each group and version in OpenAPI 3 with an index of them, one for all in OpenAPI 2."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from types import MappingProxyType
from typing import Final, NamedTuple

import orjson

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import Tree
from mockube.apiserver.customresources.custom import Custom
from mockube.apiserver.discovery import legacy
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.strategy import Strategy
from mockube.apiserver.openapi import gnostic
from mockube.apiserver.openapi.paths import META, Writer, group_tag, group_title
from mockube.apiserver.openapi.paths_v2 import SharedParameters, paths_v2, references
from mockube.apiserver.openapi.schemas import V2, V3, Definitions

_CUSTOM_INFO: Final = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
_SECURITY: Final = {
    "description": "Bearer Token authentication",
    "type": "apiKey",
    "name": "authorization",
    "in": "header",
}
_VERSIONS: Final = "get available API versions"
_WELL_KNOWN: Final = ".well-known/openid-configuration"
_KEYS: Final = "openid/v1/jwks"
_JSON, _JWKS = "application/json", "application/jwk-set+json"
_OF_EVERY_GROUP: Final = frozenset({f"{META}DeleteOptions", f"{META}WatchEvent"})
"""Definitions that are known by a name in each group and version."""
_NOT_OF_CLIENTS: Final = frozenset(
    {"admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"}
)
"""Groups that are not among the options of a custom resource: upstream takes those of client-go."""
_VERSION_INFO: Final = "io.k8s.apimachinery.pkg.version.Info"


class Foreign(NamedTuple):
    """What another server documents of one group and version."""

    path: str
    places: Mapping[str, Tree]
    """Where its document of version 3 is."""
    v2: bytes


class Text(NamedTuple):
    """A document, and the hash of it."""

    body: bytes
    digest: str


def add_foreign(document: Tree, other: Foreign) -> None:
    """Add the paths of another server to a document of version 2, with the definitions that they may need.

    As upstream: of two definitions of one name that differ, the one that comes later has a number behind its name.
    """
    try:
        given = orjson.loads(other.v2)
        paths = {path: item for path, item in given["paths"].items() if path.startswith(f"{other.path}/")}
        definitions = given.get("definitions") or {}
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
        return
    if not isinstance(definitions, dict):
        return
    own, renamed = document["definitions"], dict[str, str]()
    for name, schema in definitions.items():
        if name in own and own[name] != schema:
            renamed[name] = next(text for n in range(2, 1000) if (text := f"{name}_v{n}") not in own)
    encoded = orjson.dumps({"paths": paths, "definitions": definitions})
    for name, new in renamed.items():
        encoded = encoded.replace(f'"#/definitions/{name}"'.encode(), f'"#/definitions/{new}"'.encode())
    added = orjson.loads(encoded)
    for path, item in added["paths"].items():
        document["paths"].setdefault(path, item)
    for name, schema in added["definitions"].items():
        own[renamed.get(name, name)] = schema


def _text(body: bytes) -> Text:
    return Text(body, hashlib.sha512(body).hexdigest().upper())


class Documents:
    """The documents of a set of resources, each made when it is first asked for, and kept as text."""

    def __init__(
        self,
        rows: Iterable[Resource],
        customs: Iterable[Custom] = (),
        strategies: Mapping[GroupResource, Strategy] = MappingProxyType({}),
        others: Sequence[Foreign] = (),
        minor: str = minors.NEWEST,
    ) -> None:
        self._minor = minor
        self._info = {"title": "Kubernetes", "version": legacy.openapi_version(minor)}
        self._customs = tuple(customs)
        self._others = tuple(others)
        self._returned = frozenset(key for key, strategy in strategies.items() if strategy.returns_deleted)
        self._rows: dict[str, list[Resource]] = {}
        for row in rows:
            self._rows.setdefault(_folder(row), []).append(row)
        self.v3 = cache(self._make_v3)
        self.v2 = cache(self._make_v2)
        self.index = cache(self._make_index)
        own = {folder for folder, rows in self._rows.items() if not rows[0].custom}
        groups = {folder.rpartition("/")[0] for folder in own}
        self.folders: Sequence[str] = sorted(
            {"api", "apis", "version", _KEYS, _WELL_KNOWN} | groups | self._rows.keys()
        )

    def _make_index(self) -> Text:
        """Where each document of version 3 is, and the hash of what it says."""
        paths = {
            folder: {"serverRelativeURL": f"/openapi/v3/{folder}?hash={self.v3(folder).digest}"}
            for folder in self.folders
        }
        for other in self._others:
            paths |= other.places
        return _text(orjson.dumps({"paths": dict(sorted(paths.items()))}))

    def _make_v2(self, *, protobuf: bool = False) -> Text:
        return _text(gnostic.encode(self._v2) if protobuf else orjson.dumps(self._v2))

    @property
    def _v2(self) -> Tree:
        paths: Tree = {}
        for folder in self.folders:
            paths |= self._paths(folder)
        shared = SharedParameters()
        made = self._own_v2(paths, shared)
        for other in self._others:
            add_foreign(made, other)
        return made

    def _own_v2(self, paths: Tree, shared: SharedParameters) -> Tree:
        written = paths_v2(dict(sorted(paths.items())), shared)
        names = self._definitions.needed(references(paths))
        return {
            "swagger": "2.0",
            "info": self._info,
            "paths": written,
            "definitions": {name: self._definitions.schema(name, V2) for name in names},
            "parameters": dict(sorted(shared.named.items())),
            "securityDefinitions": {"BearerToken": _SECURITY},
            "security": [{"BearerToken": []}],
        }

    def _make_v3(self, folder: str) -> Text:
        paths = self._paths(folder)
        custom = folder in self._rows and self._rows[folder][0].custom
        names = self._definitions.needed(references(paths))
        components: Tree = (
            {"schemas": {name: self._schema_of(name, folder) for name in names}} if names else {}
        )
        if not custom:
            components["securitySchemes"] = {"BearerToken": _SECURITY}
        info = _CUSTOM_INFO if custom else self._info
        document = {"openapi": "3.0.0", "info": info, "paths": paths, "components": components}
        return _text(orjson.dumps(document))

    def _schema_of(self, name: str, folder: str) -> Tree:
        schema = self._definitions.schema(name, V3)
        if name not in _OF_EVERY_GROUP or folder not in self._rows or self._minor != minors.NEWEST:
            return schema
        row, key = self._rows[folder][0], "x-kubernetes-group-version-kind"
        own = {("", "v1"), row.group_version}
        if row.custom:
            return schema | {key: [gvk for gvk in schema[key] if gvk["group"] not in _NOT_OF_CLIENTS]}
        return schema | {key: [gvk for gvk in schema[key] if (gvk["group"], gvk["version"]) in own]}

    def _paths(self, folder: str) -> Tree:
        if folder in self._rows:
            rows = self._rows[folder]
            if rows[0].custom:
                return self._writer.paths(rows)
            title = f"get{group_title(rows[0].group)}{rows[0].version.capitalize()}APIResources"
            tag = f"{group_tag(rows[0].group)}_{rows[0].version}"
            page = self._writer.page(tag, title, "get available resources", answer=f"{META}APIResourceList")
            return {f"/{folder}/": page} | self._writer.paths(rows)
        return {f"/{folder}/": self._page(folder)}

    def _page(self, folder: str) -> Tree:
        page = self._writer.page
        match folder:
            case "api":
                return page("core", "getCoreAPIVersions", _VERSIONS, answer=f"{META}APIVersions")
            case "apis":
                return page("apis", "getAPIVersions", _VERSIONS, answer=f"{META}APIGroupList")
            case "version":
                words = "get the version information for this server"
                return page(folder, "getCodeVersion", words, answer=_VERSION_INFO, types=(_JSON,))
            case ".well-known/openid-configuration":
                words = (
                    "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'"
                )
                return page("WellKnown", "getServiceAccountIssuerOpenIDConfiguration", words, types=(_JSON,))
            case "openid/v1/jwks":
                words = "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)"
                return page("openid", "getServiceAccountIssuerOpenIDKeyset", words, types=(_JWKS,))
            case _:
                group = folder.removeprefix("apis/")
                name = f"get{group_title(group)}APIGroup"
                return page(group_tag(group), name, "get information of a group", answer=f"{META}APIGroup")

    @cached_property
    def _writer(self) -> Writer:
        return Writer(self._definitions, self._definitions.of_kinds(), self._returned)

    @cached_property
    def _definitions(self) -> Definitions:
        return Definitions(self._minor, customs=self._customs)


def _folder(row: Resource) -> str:
    return f"apis/{row.group}/{row.version}" if row.group else f"api/{row.version}"
