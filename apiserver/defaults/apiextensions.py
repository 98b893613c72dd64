"""Defaults of apiextensions.k8s.io: CustomResourceDefinitions."""

from typing import Final

from apiserver.defaults.table import FILLED_BY_OWNER, Tree, of


def _stored_versions(definition: Tree) -> None:
    """A new definition has been stored in no version but the one that it names."""
    if definition["status"]["storedVersions"]:
        return
    stored = [version["name"] for version in definition["spec"]["versions"] or () if version["storage"]]
    if stored:
        definition["status"]["storedVersions"] = stored[:1]


def _names(spec: Tree) -> None:
    names = spec["names"]
    if names["kind"]:
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")


DEFAULTS: Final = of(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    {
        "CustomResourceDefinition": _stored_versions,
        "CustomResourceDefinitionSpec": (_names, {"conversion": {"strategy": "None"}}),
        "CustomResourceDefinitionNames": FILLED_BY_OWNER,
        "ServiceReference": {"port": 443},
    },
)
