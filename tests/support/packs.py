"""Packs of users for tests: a module in a folder of `sys.path`, and the metadata that pip would install with it."""

from pathlib import Path

import pytest

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


FLAGS = """
from typing import Annotated
from msgspec import Struct
from mockube.component_base.flags import Flag, positive_int

class Flags(Struct):
    '''Shops'''
    {name}: Annotated[int, Flag("shops (5)", positive_int)] = 5
"""


@pytest.fixture
def pack_folder(tmp_path, monkeypatch):
    """A folder of `sys.path`. Packs are loaded once in a process, so each test has names of its own."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def definition(plural="websites", group="example.com", kind="Website"):
    return DEFINITION.format(plural=plural, group=group, kind=kind)


def pack_of(parts="", *texts):
    """Return a module with a pack: the arguments of `Pack` besides the definitions, which are texts."""
    return PACK.format(parts=f"definitions=lambda: {texts!r}, {parts}")


def pack_with_flag(name, parts=""):
    """Return a module with a pack that has a flag, the field of a record."""
    return FLAGS.format(name=name) + pack_of(f"flags=Flags, {parts}")


def add_metadata(
    folder: Path, distribution: str, entry_points: dict[str, str], group: str = "mockube.packs"
) -> None:
    """Write the metadata of a distribution with packs, or another group: references to objects by name."""
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {reference}\n" for name, reference in entry_points.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{lines}")


def install(folder: Path, name: str, text: str) -> None:
    """Install a pack whose module has its name."""
    (folder / f"{name}.py").write_text(text)
    add_metadata(folder, name, {name: f"{name}:PACK"})
