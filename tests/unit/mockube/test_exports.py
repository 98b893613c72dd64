"""The public names of `mockube`, and their import on first use."""

import ast
import subprocess
import sys
from operator import attrgetter

import pytest

import mockube
from mockube.exports import MODULES
from tools.packages import ROOT


def test_type_stub_matches_exports():
    stub = ast.parse((ROOT / "mockube/__init__.pyi").read_text())
    exported = {
        alias.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert exported == MODULES
    assert set(MODULES) <= set(mockube.__all__)


def test_exports_come_from_their_modules():
    for name, home in MODULES.items():
        assert getattr(mockube, name).__module__.startswith(home.partition(".")[0])


def test_missing_export_raises_attribute_error():
    with pytest.raises(AttributeError, match="module 'mockube' has no attribute 'Clutser'"):
        attrgetter("Clutser")(mockube)


@pytest.mark.thorough
def test_exports_are_imported_on_first_use():
    code = "import sys, mockube; print('mockube.cluster' in sys.modules); mockube.Cluster"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert answer.stdout == "False\n"
