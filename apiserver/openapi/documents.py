"""OpenAPI documents: in version 3 one for each group and version, with an index; in version 2 one for all."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from operator import is_
from types import MappingProxyType
from typing import Final, NamedTuple

import orjson

from mockube.apimachinery.gotext import escape_html
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.piecewise import ENCODED_PIECE_SIZE, encode_in_pieces
from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import Tree
from mockube.apiserver.customresources.custom_version import CustomVersion
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.strategy import Strategy
from mockube.component_base.version import openapi_version

from . import gnostic, gnostic_v3
from .paths import META, PathBuilder, group_tag, group_title
from .paths_v2 import SharedParameters, paths_v2, references
from .schemas import V2, V3, Definitions

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
_DEFINITIONS_OF_ALL_GROUPS: Final = frozenset({f"{META}DeleteOptions", f"{META}WatchEvent"})
"""Definitions whose `x-kubernetes-group-version-kind` has an entry for each group and version."""
_GROUPS_UNKNOWN_TO_CLIENTS: Final = frozenset(
    {"admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"}
)
"""Groups without such an entry in documents of custom resources, for which upstream uses client-go's scheme."""
_MEMBERS: Final = 3
"""The depth of the parts that are encoded one by one: paths and schemas."""
MAX_TEXTS: Final = 16
"""The number of cached documents of custom kinds: a client reads those of a few groups repeatedly."""
_VERSION_INFO: Final = "io.k8s.apimachinery.pkg.version.Info"


class ForeignDocuments(NamedTuple):
    """The OpenAPI documents of another server for one group and version."""

    path: str
    v3_paths: Mapping[str, Tree]
    """Its entries in the index of version 3."""
    v2: bytes


class EncodedDocument(NamedTuple):
    """An encoded document and its hash."""

    body: bytes
    digest: str


def add_foreign_paths(document: Tree, other: ForeignDocuments) -> None:
    """Add the paths of another server to a document of version 2, with the definitions that they may need.

    As upstream, if two definitions with the same name differ, the later one gets a number at the end of its name.
    """
    try:
        foreign_spec = orjson.loads(other.v2)
        paths = {
            path: item for path, item in foreign_spec["paths"].items() if path.startswith(f"{other.path}/")
        }
        definitions = foreign_spec.get("definitions") or {}
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
        return
    if not isinstance(definitions, dict):
        return
    own, new_names = document["definitions"], dict[str, str]()
    for name, schema in definitions.items():
        if name in own and own[name] != schema:
            new_names[name] = next(text for n in range(2, 1000) if (text := f"{name}_v{n}") not in own)
    encoded = orjson.dumps({"paths": paths, "definitions": definitions})
    for name, new in new_names.items():
        encoded = encoded.replace(f'"#/definitions/{name}"'.encode(), f'"#/definitions/{new}"'.encode())
    added = orjson.loads(encoded)
    for path, item in added["paths"].items():
        document["paths"].setdefault(path, item)
    for name, schema in added["definitions"].items():
        own[new_names.get(name, name)] = schema


def _text(body: bytes) -> EncodedDocument:
    return EncodedDocument(body, hashlib.sha512(body).hexdigest().upper())


class DocumentCache:
    """A cache of the documents of version 3, which outlives changes of custom kinds.

    Of documents of custom kinds it has all hashes, but only the last texts: they are large and rarely read.
    """

    def __init__(self) -> None:
        self._built_in: dict[str, EncodedDocument] = {}
        self._hashes: dict[str, tuple[Sequence[CustomVersion], str]] = {}
        self._texts: dict[str, EncodedDocument] = {}
        self._protobufs: dict[str, bytes] = {}
        """By the hash of the text, the last documents in protobuf."""

    def protobuf(self, text: EncodedDocument) -> bytes:
        encoded = self._protobufs.pop(text.digest, None) or gnostic_v3.encode(orjson.loads(text.body))
        self._protobufs[text.digest] = encoded
        if len(self._protobufs) > MAX_TEXTS:
            self._protobufs.pop(next(iter(self._protobufs)))
        return encoded

    def text(
        self, folder: str, custom_versions: Sequence[CustomVersion], make: Callable[[str], EncodedDocument]
    ) -> EncodedDocument:
        if not custom_versions:
            if folder not in self._built_in:
                self._built_in[folder] = make(folder)
            return self._built_in[folder]
        if not self._is_known(folder, custom_versions):
            self._texts.pop(folder, None)
        text = self._texts.pop(folder, None) or make(folder)
        self._texts[folder] = text
        if len(self._texts) > MAX_TEXTS:
            self._texts.pop(next(iter(self._texts)))
        self._hashes[folder] = custom_versions, text.digest
        return text

    def digest(
        self, folder: str, custom_versions: Sequence[CustomVersion], make: Callable[[str], EncodedDocument]
    ) -> str:
        if custom_versions and self._is_known(folder, custom_versions):
            return self._hashes[folder][1]
        return self.text(folder, custom_versions, make).digest

    def _is_known(self, folder: str, custom_versions: Sequence[CustomVersion]) -> bool:
        cached_versions = self._hashes.get(folder, ((), ""))[0]
        return len(cached_versions) == len(custom_versions) and all(
            map(is_, cached_versions, custom_versions)
        )

    def remove_others(self, folders: Collection[str]) -> None:
        """Remove the documents of all other folders: their groups and versions are no longer served."""
        for folder in [*self._hashes]:
            if folder not in folders:
                del self._hashes[folder]
                self._texts.pop(folder, None)


class Documents:
    """The documents of a set of resources, each encoded at its first request."""

    def __init__(
        self,
        rows: Iterable[Resource],
        custom_versions: Iterable[CustomVersion] = (),
        strategies: Mapping[GroupResource, Strategy] = MappingProxyType({}),
        others: Sequence[ForeignDocuments] = (),
        minor: str = minors.NEWEST,
        document_cache: DocumentCache | None = None,
    ) -> None:
        self._document_cache = document_cache or DocumentCache()
        self._minor = minor
        self._info = {"title": "Kubernetes", "version": openapi_version(minor)}
        self._custom_versions = tuple(custom_versions)
        self._by_folder: dict[str, list[CustomVersion]] = {}
        for custom in self._custom_versions:
            self._by_folder.setdefault(_folder(custom.row), []).append(custom)
        self._foreign_documents = tuple(others)
        self._returned = frozenset(key for key, strategy in strategies.items() if strategy.returns_deleted)
        self._rows: dict[str, list[Resource]] = {}
        for row in rows:
            self._rows.setdefault(_folder(row), []).append(row)
        self.v2 = cache(self._make_v2)
        self.index = cache(self._make_index)
        own = {folder for folder, rows in self._rows.items() if not rows[0].custom}
        groups = {folder.rpartition("/")[0] for folder in own}
        self.folders: Sequence[str] = sorted(
            {"api", "apis", "version", _KEYS, _WELL_KNOWN} | groups | self._rows.keys()
        )

    def v3(self, folder: str, *, protobuf: bool = False) -> EncodedDocument:
        """Return a document with the hash of its JSON, whatever its format."""
        text = self._document_cache.text(folder, self._customs_of(folder), self._make_v3)
        self._release_definitions()
        return EncodedDocument(self._document_cache.protobuf(text), text.digest) if protobuf else text

    def _release_definitions(self) -> None:
        """Release the parsed definitions: they need many times the memory of the encoded documents."""
        for name in ("_writer", "_definitions"):
            vars(self).pop(name, None)

    def _digest(self, folder: str) -> str:
        return self._document_cache.digest(folder, self._customs_of(folder), self._make_v3)

    def _customs_of(self, folder: str) -> Sequence[CustomVersion]:
        return self._by_folder.get(folder, ())

    def _make_index(self) -> EncodedDocument:
        """Return the paths of the version 3 documents, with the hash of each."""
        self._document_cache.remove_others(self._rows.keys())
        paths = {
            folder: {"serverRelativeURL": f"/openapi/v3/{folder}?hash={self._digest(folder)}"}
            for folder in self.folders
        }
        for other in self._foreign_documents:
            paths |= other.v3_paths
        self._release_definitions()
        return _text(orjson.dumps({"paths": dict(sorted(paths.items()))}))

    def _make_v2(self, *, protobuf: bool = False) -> EncodedDocument:
        text = _text(gnostic.encode(self._v2) if protobuf else encode_in_pieces(self._v2, depth=_MEMBERS))
        self._release_definitions()
        return text

    @property
    def _v2(self) -> Tree:
        paths: Tree = {}
        for folder in self.folders:
            paths |= self._paths(folder)
        shared = SharedParameters()
        document = self._own_v2(paths, shared)
        for other in self._foreign_documents:
            add_foreign_paths(document, other)
        return document

    def _own_v2(self, paths: Tree, shared: SharedParameters) -> Tree:
        written = paths_v2(dict(sorted(paths.items())), shared)
        names = self._definitions.with_references(references(paths))
        return {
            "swagger": "2.0",
            "info": self._info,
            "paths": written,
            "definitions": {name: self._definitions.schema(name, V2) for name in names},
            "parameters": dict(sorted(shared.named.items())),
            "securityDefinitions": {"BearerToken": _SECURITY},
            "security": [{"BearerToken": []}],
        }

    def _make_v3(self, folder: str) -> EncodedDocument:
        paths = self._paths(folder)
        custom = folder in self._rows and self._rows[folder][0].custom
        names = self._definitions.with_references(references(paths))
        components: Tree = (
            {"schemas": {name: self._schema_of(name, folder) for name in names}} if names else {}
        )
        if not custom:
            components["securitySchemes"] = {"BearerToken": {"type": _SECURITY["type"], **_SECURITY}}
        info = _CUSTOM_INFO if custom else self._info
        paths = dict(sorted(paths.items()))
        document = {"openapi": "3.0.0", "info": info, "paths": paths, "components": components}
        depth = _MEMBERS if len(names) > ENCODED_PIECE_SIZE else 0
        return _text(escape_html(encode_in_pieces(document, depth=depth)))

    def _schema_of(self, name: str, folder: str) -> Tree:
        schema = self._definitions.schema(name, V3)
        if (
            name not in _DEFINITIONS_OF_ALL_GROUPS
            or folder not in self._rows
            or minors.is_before(self._minor, "1.36")
        ):
            return schema
        row, key = self._rows[folder][0], "x-kubernetes-group-version-kind"
        own = {("", "v1"), row.group_version}
        if row.custom:
            return schema | {
                key: [gvk for gvk in schema[key] if gvk["group"] not in _GROUPS_UNKNOWN_TO_CLIENTS]
            }
        return schema | {key: [gvk for gvk in schema[key] if (gvk["group"], gvk["version"]) in own]}

    def _paths(self, folder: str) -> Tree:
        if folder in self._rows:
            rows = self._rows[folder]
            if rows[0].custom:
                return self._path_builder.paths(rows)
            title = f"get{group_title(rows[0].group)}{rows[0].version.capitalize()}APIResources"
            tag = f"{group_tag(rows[0].group)}_{rows[0].version}"
            page = self._path_builder.page(
                tag, title, "get available resources", answer=f"{META}APIResourceList"
            )
            return {f"/{folder}/": page} | self._path_builder.paths(rows)
        return {f"/{folder}/": self._page(folder)}

    def _page(self, folder: str) -> Tree:
        page = self._path_builder.page
        match folder:
            case "api":
                return page("core", "getCoreAPIVersions", _VERSIONS, answer=f"{META}APIVersions")
            case "apis":
                return page("apis", "getAPIVersions", _VERSIONS, answer=f"{META}APIGroupList")
            case "version":
                description = "get the version information for this server"
                return page(folder, "getCodeVersion", description, answer=_VERSION_INFO, types=(_JSON,))
            case ".well-known/openid-configuration":
                description = (
                    "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'"
                )
                return page(
                    "WellKnown", "getServiceAccountIssuerOpenIDConfiguration", description, types=(_JSON,)
                )
            case "openid/v1/jwks":
                description = "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)"
                return page("openid", "getServiceAccountIssuerOpenIDKeyset", description, types=(_JWKS,))
            case _:
                group = folder.removeprefix("apis/")
                name = f"get{group_title(group)}APIGroup"
                return page(group_tag(group), name, "get information of a group", answer=f"{META}APIGroup")

    @cached_property
    def _path_builder(self) -> PathBuilder:
        return PathBuilder(self._definitions, self._definitions.definition_names_by_gvk(), self._returned)

    @cached_property
    def _definitions(self) -> Definitions:
        return Definitions(self._minor, custom_versions=self._custom_versions)


def _folder(row: Resource) -> str:
    return f"apis/{row.group}/{row.version}" if row.group else f"api/{row.version}"
