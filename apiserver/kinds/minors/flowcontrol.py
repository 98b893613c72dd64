"""flowcontrol.apiserver.k8s.io/v1beta3, which is served until 1.31. Its objects are those of v1, except for zero shares.

In v1beta3, shares that are zero or absent get the default. An annotation marks shares that are zero in v1.
"""

from typing import Final

from msgspec.structs import replace

from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.flowcontrol import flow_schema, priority_level_configuration
from mockube.apiserver.kinds.kind import Conversion, Kind

VERSION: Final = "v1beta3"
PRESERVE_ZERO: Final = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
SHARES: Final = "nominalConcurrencyShares"
DEFAULT_SHARES: Final = 30


def _with_version(tree: Tree, version: str) -> Tree:
    return {**tree, "apiVersion": f"flowcontrol.apiserver.k8s.io/{version}"}


def _schema_to_stored(tree: Tree) -> Tree:
    return _with_version(tree, "v1")


def _schema_from_stored(tree: Tree) -> Tree:
    return _with_version(tree, VERSION)


def _level_to_stored(tree: Tree) -> Tree:
    level = _with_version(tree, "v1")
    annotations = (level.get("metadata") or {}).get("annotations") or {}
    if PRESERVE_ZERO in annotations:
        other_annotations = {name: value for name, value in annotations.items() if name != PRESERVE_ZERO}
        level["metadata"] = {**level["metadata"], "annotations": other_annotations}
        if not other_annotations:
            del level["metadata"]["annotations"]
    return _with_shares(level, absent=0)


def _level_from_stored(tree: Tree) -> Tree:
    level = _with_version(tree, VERSION)
    limited = (level.get("spec") or {}).get("limited")
    if limited is not None and not limited.get(SHARES):
        metadata = level.get("metadata") or {}
        annotations = {**(metadata.get("annotations") or {}), PRESERVE_ZERO: ""}
        level["metadata"] = {**metadata, "annotations": dict(sorted(annotations.items()))}
        spec = level["spec"]
        level["spec"] = {
            **spec,
            "limited": {name: value for name, value in limited.items() if name != SHARES},
        }
    return level


def _with_shares(tree: Tree, *, absent: int) -> Tree:
    limited = (tree.get("spec") or {}).get("limited")
    if limited is None or SHARES in limited:
        return tree
    return {**tree, "spec": {**tree["spec"], "limited": {SHARES: absent, **limited}}}


def _default_shares(tree: Tree) -> None:
    annotations = (tree.get("metadata") or {}).get("annotations") or {}
    limited = (tree.get("spec") or {}).get("limited")
    if limited is not None and not limited.get(SHARES) and PRESERVE_ZERO not in annotations:
        limited[SHARES] = DEFAULT_SHARES


def _row(row: Resource) -> Resource:
    group, kind = row.group, row.kind
    deprecation = "is deprecated in v1.29+, unavailable in v1.32+"
    return replace(
        row,
        version=VERSION,
        storage_version=(group, "v1"),
        deprecated=f"{group}/{VERSION} {kind} {deprecation}; use {group}/v1 {kind}",
    )


_LEVEL: Final = priority_level_configuration.KIND
_SCHEMA: Final = flow_schema.KIND

V1BETA3: Final = (
    Kind(
        resource=_row(_SCHEMA.resource),
        printer=_SCHEMA.printer,
        conversion=Conversion(to_stored=_schema_to_stored, from_stored=_schema_from_stored),
        defaults=defaults_table(
            "io.k8s.api.flowcontrol.v1beta3", {"FlowSchemaSpec": {"matchingPrecedence": 1000}}
        ),
    ),
    Kind(
        resource=_row(_LEVEL.resource),
        printer=_LEVEL.printer,
        conversion=Conversion(to_stored=_level_to_stored, from_stored=_level_from_stored),
        defaults=defaults_table(
            "io.k8s.api.flowcontrol.v1beta3",
            {
                "PriorityLevelConfiguration": _default_shares,
                "ExemptPriorityLevelConfiguration": {SHARES: 0, "lendablePercent": 0},
                "LimitedPriorityLevelConfiguration": {"lendablePercent": 0},
                "QueuingConfiguration": {"handSize": 8, "queues": 64, "queueLengthLimit": 50},
            },
        ),
    ),
)
