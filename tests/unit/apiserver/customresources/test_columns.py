"""Tables of custom resources."""

from datetime import UTC, datetime

import pytest

from mockube.apiserver.customresources.columns import printer
from mockube.apiserver.customresources.compile import compile_definition
from tests.support.server import definitions

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
TREE = {
    "metadata": {"name": "w", "creationTimestamp": "2030-01-02T03:03:05Z"},
    "spec": {"size": 3, "half": 1.5, "on": True, "names": ["a", "b"], "labels": {"k": "v"}, "none": None},
}


def column(kind, path, **others):
    return {"name": "C", "type": kind, "jsonPath": path} | others


@pytest.mark.parametrize(
    ("given", "cell"),
    [
        pytest.param(column("integer", ".spec.size"), 3, id="an integer"),
        pytest.param(column("integer", ".spec.half"), 1, id="an integer of a fraction"),
        pytest.param(column("integer", ".spec.names"), None, id="no integer"),
        pytest.param(column("number", ".spec.half"), 1.5, id="a number"),
        pytest.param(column("boolean", ".spec.on"), True, id="a boolean"),
        pytest.param(column("string", ".spec.size"), "3", id="a number as text"),
        pytest.param(column("string", ".spec.names[*]"), "a", id="the first of several"),
        pytest.param(column("string", ".spec.labels"), '{"k":"v"}', id="an object as text"),
        pytest.param(column("string", ".spec.none"), "<no value>", id="null"),
        pytest.param(column("string", ".spec.missing"), None, id="empty"),
        pytest.param(column("date", ".metadata.creationTimestamp"), "60s", id="an age"),
        pytest.param(column("date", ".spec.names[0]"), "<invalid>", id="no time"),
    ],
)
def test_column_shows_value_of_its_path(given, cell):
    assert printer([given]).cells(TREE, NOW) == ["w", cell]


def test_default_columns_are_name_and_age():
    made = printer(())
    assert [one.name for one in made.columns] == ["Name", "Age"]
    assert made.cells(TREE, NOW) == ["w", "60s"]


def test_column_without_description_names_its_path():
    (_, made) = printer([column("string", ".spec.size")]).columns
    assert made.description == "Custom resource definition column (in JSONPath format): .spec.size"


@pytest.mark.parametrize("path", [".spec[size]", ".l" + "[?(" * 2000 + "@.a" + ")]" * 2000])
def test_columns_from_first_unparsable_path_on_are_omitted(caplog, path):
    """Measured: kube-apiserver accepts such a definition and prints the columns before the invalid path."""
    columns = [column("string", one) | {"name": one[:5]} for one in (".spec.size", path, ".spec")]
    odd = definitions.version(additionalPrinterColumns=columns)
    (custom,) = compile_definition(definitions.definition(odd), dict)
    assert [one.name for one in custom.printer.columns] == ["Name", ".spec"]
    assert (
        f"widgets.example.com/v1 is printed without the column {path[:5]} and the columns after it"
        in caplog.text
    )
