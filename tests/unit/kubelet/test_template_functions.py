"""Each function of a stage's template returns what Go's templates, sprig or kwok return."""

import pytest

from mockube.kubelet.template.parser import TemplateError, parse


def render(text, environment=None):
    return parse(text).render({"a": {"b": "c"}, "list": ["x", "y"]}, environment or {})


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("and 1 0 2", "0"),
        ("and 1 2", "2"),
        ("or 0 3 4", "3"),
        ("or 0 false", "false"),
        ("not 0", "true"),
        ("eq 1 2 1", "true"),
        ("eq 1 2", "false"),
        ("ne 1 2", "true"),
        ("ne 1 1", "false"),
        ("lt 1 2", "true"),
        ("lt 2 2", "false"),
        ("le 2 2", "true"),
        ("le 3 2", "false"),
        ("gt 3 2", "true"),
        ("gt 2 2", "false"),
        ("ge 2 2", "true"),
        ("ge 1 2", "false"),
        ("index .a `b`", "c"),
        ("index .list 1", "y"),
        ("index .none `b`", "<no value>"),
        ("len .list", "2"),
        ("printf `%s-%d` `a` 1", "a-1"),
        ("print `a` 1", "a1"),
        ("add 1 2 3", "6"),
        ("add1 4", "5"),
        ("sub 5 2", "3"),
        ("mod 7 4", "3"),
        ("int `8`", "8"),
        ("int nil", "0"),
        ("default `d` .none", "d"),
        ("default `d` `v`", "v"),
        ("dict `k` 1", "map[k:1]"),
        ("list 1 2", "[1 2]"),
        ("hasKey .a `b`", "true"),
        ("hasKey .a `z`", "false"),
        ("ternary `y` `n` true", "y"),
        ("ternary `y` `n` false", "n"),
        ("toString 5", "5"),
        ("quote `q`", '"q"'),
        ("quote 5", '"5"'),
        ("Quote `q`", '"q"'),
        ("lower `AbC`", "abc"),
        ("upper `AbC`", "ABC"),
        ("join `,` .list", "x,y"),
        ("YAML .a", "b: c\n"),
    ],
)
def test_function_returns_its_result(call, expected):
    assert render("{{ " + call + " }}") == expected


def test_indent_of_yaml_has_a_limit():
    render("{{ YAML .a 100 }}")
    with pytest.raises((TemplateError, ValueError)):
        render("{{ YAML .a 101 }}")


@pytest.mark.parametrize(
    "name",
    [
        "Now",
        "StartTime",
        "Version",
        "NodeConditions",
        "NodeIP",
        "NodeName",
        "MachineID",
        "SystemUUID",
        "BootID",
        "NodeInfo",
        "NodePort",
        "NodeIPWith",
        "NodeIPsWith",
        "PodIPWith",
        "PodIPsWith",
    ],
)
def test_function_of_the_environment_is_known(name):
    assert render("{{ " + name + " }}", {name: lambda: "v"}) == "v"


def test_other_function_is_refused():
    with pytest.raises(TemplateError):
        parse("{{ NoSuchFunction }}")
