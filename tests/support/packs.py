"""Packs of users for tests: a module in a folder of `sys.path`, and the metadata that pip would install with it."""

from pathlib import Path

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.{group}}}
spec:
  group: {group}
  names: {{plural: {plural}, kind: {kind}}}
  scope: Namespaced
  versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}]
"""
PACK = """
from mockube.component_base.packs import Pack

PACK = Pack({parts})
"""


def definition(plural="websites", group="example.com", kind="Website"):
    return DEFINITION.format(plural=plural, group=group, kind=kind)


def pack_of(parts="", *texts):
    """Return a module with a pack: the arguments of `Pack` besides the definitions, which are texts."""
    return PACK.format(parts=f"definitions=lambda: {texts!r}, {parts}")


def add_metadata(folder: Path, distribution: str, entry_points: dict[str, str]) -> None:
    """Write the metadata of a distribution with packs: references to objects by name."""
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {reference}\n" for name, reference in entry_points.items())
    (info / "entry_points.txt").write_text(f"[mockube.packs]\n{lines}")


def install(folder: Path, name: str, text: str) -> None:
    """Install a pack whose module has its name."""
    (folder / f"{name}.py").write_text(text)
    add_metadata(folder, name, {name: f"{name}:PACK"})
