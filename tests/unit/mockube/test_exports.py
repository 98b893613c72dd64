"""What can be had from `mockube` itself, and when it is imported."""

import ast
import subprocess
import sys

import pytest

import mockube
from mockube.exports import HOMES
from tests.architecture.source import ROOT


def test_type_checkers_are_told_the_same():
    stub = ast.parse((ROOT / "mockube/__init__.pyi").read_text())
    told = {
        alias.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert told == HOMES
    assert set(HOMES) <= set(mockube.__all__)


def test_each_is_what_lies_where_it_is_said_to():
    for name, home in HOMES.items():
        assert getattr(mockube, name).__module__.startswith(home.partition(".")[0])


def test_what_is_not_there_is_said_to_be_missing():
    with pytest.raises(AttributeError, match="module 'mockube' has no attribute 'Clutser'"):
        mockube.Clutser  # noqa: B018 - it is looked up for what it raises


def test_nothing_is_imported_until_it_is_asked_for():
    code = "import sys, mockube; print('mockube.cluster' in sys.modules); mockube.Cluster"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert answer.stdout == "False\n"
