"""Stage templates render as in Go."""

import pytest

from mockube.kubelet.template.parser import TemplateError, parse

POD = {
    "metadata": {"name": "p", "annotations": {"a/b": "3"}, "labels": {"y": "2", "x": "1"}},
    "spec": {
        "containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "i:2"}],
        "hostNetwork": True,
    },
    "status": {"count": 2},
}
ENVIRONMENT = {"Now": lambda: "now", "PodIPWith": lambda *asked: "/".join(map(str, asked))}


def render(text):
    return parse(text).render(POD, ENVIRONMENT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("plain", "plain", id="text"),
        pytest.param("{{ .metadata.name }}", "p", id="a field"),
        pytest.param("{{ .metadata.none.such }}", "<no value>", id="no field"),
        pytest.param("{{ .status.count }} {{ .spec.hostNetwork }}", "2 true", id="numbers and booleans"),
        pytest.param("{{ .metadata.labels }}", "map[x:1 y:2]", id="a map"),
        pytest.param("{{ .metadata.name | Quote }}", '"p"', id="piped"),
        pytest.param("{{ Quote .status.count }}", '"2"', id="a number in quotes"),
        pytest.param("a {{- /* not said */ -}} b", "ab", id="a comment, trimmed"),
        pytest.param("a \n{{- .metadata.name -}}\n b", "apb", id="trimmed"),
        pytest.param("{{ if .spec.hostNetwork }}y{{ else }}n{{ end }}", "y", id="if"),
        pytest.param(
            "{{ if .none }}y{{ else if eq .metadata.name `p` }}p{{ else }}n{{ end }}", "p", id="else if"
        ),
        pytest.param("{{ with .none }}{{ . }}{{ else }}n{{ end }}", "n", id="with of an empty value"),
        pytest.param("{{ with .metadata }}{{ .name }}{{ $.status.count }}{{ end }}", "p2", id="with"),
        pytest.param("{{ range .spec.containers }}{{ .name }};{{ end }}", "c;d;", id="range"),
        pytest.param("{{ range .none }}x{{ else }}none{{ end }}", "none", id="range over an empty list"),
        pytest.param(
            "{{ range $i, $c := .spec.containers }}{{ $i }}{{ $c.name }}{{ end }}", "0c1d", id="index"
        ),
        pytest.param("{{ range $c := .spec.containers }}{{ $c.image }} {{ end }}", "i:1 i:2 ", id="element"),
        pytest.param("{{ range $k, $v := .metadata.labels }}{{ $k }}{{ $v }}{{ end }}", "x1y2", id="map"),
        pytest.param(
            "{{ range .spec.containers }}{{ if eq .name `d` }}{{ break }}{{ end }}{{ .name }}{{ end }}",
            "c",
            id="break",
        ),
        pytest.param(
            "{{ range .spec.containers }}{{ if eq .name `c` }}{{ continue }}{{ end }}{{ .name }}{{ end }}",
            "d",
            id="continue",
        ),
        pytest.param("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}", "2", id="assigned"),
        pytest.param("{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ end }}{{ $x }}", "1", id="hidden"),
        pytest.param("{{ $now := Now }}{{ $now }}", "now", id="a variable of a call"),
        pytest.param("{{ ( index .spec.containers 1 ).name }}", "d", id="a field of a call"),
        pytest.param('{{ index .metadata.annotations "a/b" }}', "3", id="index of a map"),
        pytest.param('{{ or ( index ( or .none dict ) "k" ) "def" }}', "def", id="or"),
        pytest.param("{{ and true 0 }} {{ not false }}", "0 true", id="and, not"),
        pytest.param("{{ add1 ( or .status.generation 0 ) }}", "1", id="add1"),
        pytest.param("{{ PodIPWith .metadata.name ( or .none false ) }}", "p/False", id="the environment"),
        pytest.param(
            '{{ define "one" }}<{{ .c.name }}{{ .x }}>{{ end }}'
            '{{ range .spec.containers }}{{ template "one" dict "c" . "x" 1 }}{{ end }}',
            "<c1><d1>",
            id="defined",
        ),
        pytest.param("{{ YAML .metadata.labels }}", "x: '1'\ny: '2'\n", id="YAML"),
        pytest.param("a:{{ YAML .metadata.labels 1 }}", "a:\n  x: '1'\n  y: '2'\n  ", id="YAML, indented"),
        pytest.param('{{ "a\\n\\"b" }}', 'a\n"b', id="a text"),
        pytest.param("{{ eq nil .none }} {{ eq 1 2 1 }} {{ gt 2.5 1 }}", "true true true", id="comparisons"),
        pytest.param('{{ printf "kwok-%s" .metadata.name }}', "kwok-p", id="printf"),
        pytest.param(
            '{{ printf "%q %v %t" .metadata.name .status.count true }}', '"p" 2 true', id="printf, verbs"
        ),
        pytest.param('{{ printf "%05d|%-3d|%3s|%+d" 42 7 "x" 1 }}', "00042|7  |  x|+1", id="printf, widths"),
        pytest.param(
            '{{ printf "%.2f %x %X %.1s 1%%" 1.005 255 255 "ab" }}', "1.00 ff FF a 1%", id="printf, precision"
        ),
        pytest.param(
            '{{ printf "%v %s" .metadata.labels .spec.none }}',
            "map[x:1 y:2] %!s(<nil>)",
            id="printf without arguments",
        ),
        pytest.param('{{ printf "%d %s" "x" }}', "%!d(string=x) %!s(MISSING)", id="printf, mistakes"),
        pytest.param(
            '{{ printf "a" 1 "b" nil }}', "a%!(EXTRA int=1, string=b, <nil>)", id="printf, too many"
        ),
        pytest.param('{{ printf "%s" (list "a" "b") }}', "[a b]", id="printf, a list"),
        pytest.param(r'{{ print `a\n"` "\"" }}', r'a\n""', id="a raw string has no escapes"),
        pytest.param(
            '{{ printf "%d" true }} {{ printf "%t" 1.5 }} {{ printf "%t" 1 }}',
            "%!d(bool=true) %!t(float64=1.5) %!t(int=1)",
            id="printf, values of other types",
        ),
        pytest.param(
            '{{ printf "" (list 1) .metadata.labels }}',
            "%!(EXTRA []interface {}=[1], map[string]interface {}=map[x:1 y:2])",
            id="printf, too many lists and maps",
        ),
    ],
)
def test_templates_are_rendered(text, expected):
    assert render(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ frobnicate . }}", "function 'frobnicate' is not supported"),
        ("{{ if . }}", "a block has no {{ end }}"),
        ("{{ if . }}{{ else }}", "an {{ else }} has no {{ end }}"),
        ("{{ end }}", "unexpected {{ end }}"),
        ("{{ define `x` }}", "the definition of 'x' has no {{ end }}"),
        ("{{ ( 1 }}", "unclosed parenthesis in '( 1'"),
        ("{{ .a .b }}", "unexpected '.b' in '.a .b'"),
        ("{{ .a | .b }}", "'.b' is no function"),
        ("{{ range $a, $b .c }}{{ end }}", ":= is missing"),
        ("{{ .a % }}", "'%' is not supported"),
        ("{{ template . }}", "unexpected '.'"),
        ("{{ | }}", "unexpected '|'"),
    ],
)
def test_invalid_template_is_refused(text, problem):
    with pytest.raises(TemplateError) as raised:
        parse(text)
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ $x }}", "undefined variable '$x'"),
        ("{{ $x = 1 }}", "undefined variable '$x'"),
        ("{{ range .metadata.name }}{{ end }}", "cannot range over p"),
        ("{{ template `x` }}", "template 'x' is not defined"),
        ("{{ index .spec.containers 7 }}", "error calling index"),
        ("{{ NodeIP }}", "function 'NodeIP' is not available here"),
    ],
)
def test_unrenderable_template_is_refused(text, problem):
    with pytest.raises(TemplateError) as raised:
        render(text)
    assert problem in str(raised.value)
