"""No modules import each other in a circle."""

import grimp
import pytest

from tests.architecture.rules.circles import circles


def test_modules_do_not_import_each_other():
    graph = grimp.build_graph("mockube", exclude_type_checking_imports=False, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert any(imports.values())
    assert not circles(imports), "move what both need into a module of its own, or declare a Protocol"


@pytest.mark.parametrize(
    ("imports", "found"),
    [
        pytest.param({"a": ["b"], "b": ["c"], "c": []}, [], id="a chain"),
        pytest.param({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}, [], id="two ways to a module"),
        pytest.param({"a": ["b"], "b": ["a"]}, [["a", "b"]], id="two modules"),
        pytest.param({"a": ["b"], "b": ["c"], "c": ["d"], "d": ["b"]}, [["b", "c", "d"]], id="three modules"),
        pytest.param(
            {"a": ["b"], "b": ["a", "c"], "c": ["d"], "d": ["c"]}, [["c", "d"], ["a", "b"]], id="two circles"
        ),
    ],
)
def test_circle_of_modules_is_found(imports, found):
    assert circles(imports) == found


def test_import_for_types_counts(tmp_path, monkeypatch):
    package = tmp_path / "planted_circle"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from . import b\n")
    (package / "b.py").write_text(
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from . import a\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    graph = grimp.build_graph("planted_circle", exclude_type_checking_imports=False, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert circles(imports) == [["planted_circle.a", "planted_circle.b"]]
