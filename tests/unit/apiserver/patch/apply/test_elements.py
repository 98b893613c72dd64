import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apiserver.patch.apply import elements
from mockube.apiserver.patch.apply.elements import MalformedFields


@pytest.mark.parametrize(
    ("text", "element"),
    [
        pytest.param("f:spec", "f:spec", id="a field"),
        pytest.param("f:", "f:", id="a field without a name"),
        pytest.param('f:a b"<', 'f:a b"<', id="field name is unchanged"),
        pytest.param("i:007", "i:7", id="an index"),
        pytest.param('v: "a"', 'v:"a"', id="a text"),
        pytest.param("v:1.0", "v:1", id="a whole number"),
        pytest.param('v:"<"', 'v:"\\u003c"', id="escaped as in Go"),
        pytest.param('k:{"b":1, "a":"x"}', 'k:{"a":"x","b":1}', id="keys in order"),
        pytest.param("x:whatever", None, id="not known yet"),
    ],
)
def test_path_element_is_printed_canonically(text, element):
    assert elements.canonical(text) == element


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f", "key must be 2 characters long:"),
        ("spec", "missing colon: spec"),
        ("k:[1]", "expected an object: k:[1]"),
    ],
)
def test_malformed_path_element_is_refused(text, message):
    with pytest.raises(MalformedFields) as refused:
        elements.canonical(text)
    assert str(refused.value) == message


@pytest.mark.parametrize("text", ["v:{", "k:", "i:one"])
def test_invalid_json_in_path_element_is_refused(text):
    with pytest.raises(MalformedFields):
        elements.canonical(text)


def test_path_elements_are_ordered():
    in_order = [
        "f:a",
        "f:b",
        'k:{"a":1}',
        'k:{"a":1,"b":1}',
        'k:{"a":9}',
        'k:{"a":10}',
        'k:{"a":"x"}',
        'k:{"a":true}',
        'k:{"b":1}',
        "v:2",
        "v:10",
        'v:"a"',
        "v:false",
        "v:true",
        "v:null",
        "i:2",
        "i:10",
    ]
    assert sorted(in_order, key=elements.sort_key) == in_order


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ("f:spec", ".spec"),
        ('k:{"name":"main"}', '[name="main"]'),
        ('k:{"containerPort":8080,"protocol":"TCP"}', '[containerPort=8080,protocol="TCP"]'),
        ('k:{"big":1000000}', "[big=1e+06]"),
        ('k:{"a":null,"b":true,"c":[1,"x"],"d":{"e":2}}', '[a=null,b=true,c=[1,"x"],d=e=2]'),
        ('v:"example.com/a"', '[="example.com/a"]'),
        ("v:1.5", "[=1.5]"),
        ("i:3", "[3]"),
    ],
)
def test_path_elements_are_printed(element, text):
    assert elements.format_element(element) == text


PRIMITIVES = st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=5)


@given(keys=st.dictionaries(st.text(min_size=1, max_size=3), PRIMITIVES, min_size=1, max_size=3))
def test_equal_keys_have_one_canonical_text(keys):
    element = elements.of_keys(keys)
    assert elements.of_keys(dict(reversed(keys.items()))) == element
    assert elements.canonical(element) == element


@given(value=PRIMITIVES)
def test_equal_values_have_one_canonical_text(value):
    element = elements.of_value(value)
    assert elements.canonical(element) == element
