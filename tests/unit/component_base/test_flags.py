"""Parsers of flag values, and the errors for invalid values."""

import dataclasses
from typing import Annotated

import pytest

from mockube.component_base.flags import Flag, Sections, boolean


@dataclasses.dataclass(frozen=True)
class Writing:
    """Writing"""

    log_file: Annotated[str, Flag("file")] = ""
    quick: Annotated[bool, Flag("quick", boolean, alias="in_haste")] = False


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--log-file", "-", "--quick"], Writing("-", quick=True)),
        (["--log-file", "--quick"], Writing("--quick")),
        (["--log_file", "-x=1"], Writing("-x=1")),
        (["--quick=false", "--log-file=-"], Writing("-")),
        (["--quick", "--log-file", "a"], Writing("a", quick=True)),
    ],
)
def test_flag_takes_next_argument_as_its_value(arguments, expected):
    """As pflag: the value of a flag may begin with a dash, and a boolean has no separate value."""
    records, _ = Sections({"writing": Writing}, ignored=()).parse(arguments, {}, "TEST")
    assert records == {"writing": expected}


@pytest.mark.parametrize("variable", ["TEST_QUICK", "TEST_IN_HASTE"])
@pytest.mark.parametrize(("arguments", "is_quick"), [([], True), (["--in-haste=false"], False)])
def test_variable_of_each_name_sets_flag_that_is_not_an_argument(variable, arguments, is_quick):
    records, _ = Sections({"writing": Writing}, ignored=()).parse(arguments, {variable: "true"}, "TEST")
    assert records == {"writing": Writing(quick=is_quick)}
