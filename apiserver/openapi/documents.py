"""Whole documents: one for each group and version in OpenAPI 3 with an index of them, one for all in OpenAPI 2."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from typing import Any, Final, NamedTuple

import orjson

from mockube.apimachinery.tree import Tree
from mockube.apiserver.customresources.custom import Custom
from mockube.apiserver.discovery.legacy import DOCUMENT
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.openapi import gnostic
from mockube.apiserver.openapi.paths import Writer
from mockube.apiserver.openapi.schemas import V2, V3, Definitions

_INFO: Final = {"title": "Kubernetes", "version": DOCUMENT["gitVersion"]}
_ALWAYS: Final = tuple(
    f"io.k8s.apimachinery.pkg.apis.meta.v1.{name}"
    for name in ("DeleteOptions", "Status", "APIResourceList", "WatchEvent")
)
"""What every group answers with or takes, whatever its kinds."""


class Text(NamedTuple):
    """A document, and the hash of it."""

    body: bytes
    digest: str


def _text(body: bytes) -> Text:
    return Text(body, hashlib.sha512(body).hexdigest().upper())


class Documents:
    """The documents of a set of resources, each made when it is first asked for, and kept as text."""

    def __init__(self, rows: Iterable[Resource], customs: Iterable[Custom] = ()) -> None:
        self._customs = tuple(customs)
        self._rows: dict[str, list[Resource]] = {}
        for row in rows:
            folder = f"apis/{row.group}/{row.version}" if row.group else f"api/{row.version}"
            self._rows.setdefault(folder, []).append(row)
        self.v3 = cache(self._make_v3)
        self.v2 = cache(self._make_v2)
        self.index = cache(self._make_index)
        self.folders: Sequence[str] = tuple(self._rows)

    def _make_index(self) -> Text:
        """Where each document of version 3 is, and the hash of what it says."""
        paths = {
            folder: {"serverRelativeURL": f"/openapi/v3/{folder}?hash={self.v3(folder).digest}"}
            for folder in self._rows
        }
        return _text(orjson.dumps({"paths": paths}))

    def _make_v2(self, *, protobuf: bool = False) -> Text:
        return _text(gnostic.encode(self._v2) if protobuf else orjson.dumps(self._v2))

    @property
    def _v2(self) -> Tree:
        rows = [row for rows in self._rows.values() for row in rows]
        definitions = self._definitions
        written = {name: definitions.schema(name, V2) for name in definitions.needed(self._names(rows))}
        document = {"swagger": "2.0", "info": _INFO, "paths": Writer(self._kinds, V2).paths(rows)}
        return document | {"definitions": written}

    def _make_v3(self, folder: str) -> Text:
        rows, definitions = self._rows[folder], self._definitions
        written = {name: definitions.schema(name, V3) for name in definitions.needed(self._names(rows))}
        document = {"openapi": "3.0.0", "info": _INFO, "paths": Writer(self._kinds, V3).paths(rows)}
        return _text(orjson.dumps(document | {"components": {"schemas": written}}))

    def _names(self, rows: Iterable[Resource]) -> list[str]:
        kinds = self._kinds
        wanted = [(row.group, row.version, kind) for row in rows for kind in (row.kind, row.list_kind)]
        wanted += [
            (*(sub.group_version or row.group_version), sub.kind)
            for row in rows
            for sub in row.subresources
            if sub.kind
        ]
        return [*_ALWAYS, *(kinds[gvk] for gvk in wanted if gvk in kinds)]

    @cached_property
    def _definitions(self) -> Definitions:
        return Definitions(customs=self._customs)

    @cached_property
    def _kinds(self) -> Any:
        return self._definitions.of_kinds()
