"""The resources that a release serves by default, as its published discovery documents and its defaults say."""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from tools.minors.gomodules import Release

DISCOVERY = "api/discovery"
DEFAULTS = "pkg/controlplane/instance.go"
BETA = re.compile(r'^\s*(\w+)\.SchemeGroupVersion\.WithResource\("(\w+)"\)', re.MULTILINE)
IMPORT = re.compile(r'^\s*(\w+) "k8s\.io/(?:api|kubernetes/pkg/apis)/(\w+)/(\w+)"', re.MULTILINE)
GATED = {"v1 pods/resize": "InPlacePodVerticalScaling"}
"""Subresources that are served if a gate is on. The documents were made with all gates on."""


def read_resources(release: Release, gates: Mapping[str, Any]) -> Mapping[str, bool]:
    """By group and version and name, such as "apps/v1 deployments/scale"."""
    betas = read_betas((release.source / DEFAULTS).read_text())
    resources = {}
    for path in sorted((release.source / DISCOVERY).glob("*.json")):
        document = orjson.loads(path.read_bytes())
        if document["kind"] != "APIResourceList":
            continue
        version = document["groupVersion"]
        for row in document["resources"]:
            if is_stable(version) or (version, row["name"].partition("/")[0]) in betas:
                resources[f"{version} {row['name']}"] = True
    return {name: True for name in resources if name not in GATED or gates[GATED[name]][1]}


def is_stable(version: str) -> bool:
    return "alpha" not in version and "beta" not in version


def read_betas(source: str) -> set[tuple[str, str]]:
    """Resources of beta versions that are served all the same: group and version, and the name."""
    _, _, rest = source.partition("legacyBetaEnabledByDefaultResources = ")
    listed = rest.partition("\n\t}")[0]
    versions = {
        alias: f"{group}.apiserver.k8s.io/{version}" for alias, group, version in IMPORT.findall(source)
    }
    return {(versions[alias], name) for alias, name in BETA.findall(listed)}
