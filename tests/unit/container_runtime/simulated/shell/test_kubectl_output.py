"""Templates and tables of kubectl have the text of the real program."""

import time

import pytest

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.network_programs.kubectl.client import KubectlError
from mockube.container_runtime.simulated.shell.network_programs.kubectl.output import (
    expand_template,
    table_lines,
    to_json,
    to_yaml,
)

LIST = {"items": [{"metadata": {"name": "a"}, "n": 1}, {"metadata": {"name": "b"}, "n": True}]}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.items[0].metadata.name}", "a"),
        (".items[0].metadata.name", "a"),
        ("{.items[*].metadata.name}", "a b"),
        ("{.items[*].n}", "1 true"),
        ("{.items[0].metadata}", '{"name":"a"}'),
        ("{.none}", ""),
        ('{range .items[*]}{.metadata.name}{"\\n"}{end}', "a\nb\n"),
        ("x{.items[1].n}y", "xtruey"),
        ('{.items[?(@.metadata.name=="b")].n}', "true"),
        ("{'{'}", "{"),
    ],
)
def test_template_is_expanded(template, text):
    assert expand_template(template, LIST) == text


@pytest.mark.parametrize("template", ["{end}", "{range .items[*]}", "{.a", "{.items[}", "x" * 20_000])
def test_invalid_template_is_error(template):
    with pytest.raises(KubectlError, match="error"):
        expand_template(template, LIST)


@pytest.mark.timed
def test_nested_ranges_have_a_limit():
    tree = {"items": list(range(1000))}
    began = time.process_time()
    expand_template("{range .items[*]}" * 3 + "{end}" * 3, tree)
    assert expand_template("{range .items[*]}{.a}{end}", tree) == ""
    assert time.process_time() - began < 5
    assert len(expand_template("{range .items[*]}x{range ..}y{end}{end}", tree)) <= limits.MAX_TEMPLATE_PARTS


def test_table_is_aligned():
    table = {
        "columnDefinitions": [
            {"name": "Name", "priority": 0}, {"name": "Ready", "priority": 0}, {"name": "IP", "priority": 1},
        ],
        "rows": [{"cells": ["a", True, "1.2.3.4"]}, {"cells": ["long-name", None, ""]}],
    }  # fmt: skip
    assert table_lines(table, is_wide=False, has_header=True) == (
        "NAME        READY\na           true\nlong-name   <none>\n"
    )
    assert table_lines(table, is_wide=True, has_header=False, prefix="pod/").startswith(
        "pod/a           true     1.2.3.4\n"
    )


def test_objects_have_formats_of_kubectl():
    tree = {"b": [{"c": None}], "a": "true"}
    assert (
        to_json(tree)
        == '{\n    "a": "true",\n    "b": [\n        {\n            "c": null\n        }\n    ]\n}\n'
    )
    assert to_yaml(tree) == "a: 'true'\nb:\n- c: null\n"
