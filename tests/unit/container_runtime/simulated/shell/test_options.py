"""The options of programs are parsed as getopt does, and what a program does not have is refused by name."""

import pytest

from mockube.container_runtime.simulated.shell.options import (
    MissingValue,
    UnknownOption,
    parse_command_line,
    parse_options,
)
from mockube.container_runtime.simulated.shell.process import ProgramUsageError

TABLE = {"-o": "output=", "--output": "output=", "-q": "quiet", "--quiet": "quiet", "-v": "verbose"}


@pytest.mark.parametrize(
    ("arguments", "values", "others"),
    [
        (["-qv", "-o", "x", "a"], {"quiet": [""], "verbose": [""], "output": ["x"]}, ["a"]),
        (["-qox"], {"quiet": [""], "output": ["x"]}, []),
        (["--output=x", "--output", "y"], {"output": ["x", "y"]}, []),
        (["a", "-q", "--", "-v", "-"], {"quiet": [""]}, ["a", "-v", "-"]),
        (["-"], {}, ["-"]),
    ],
)
def test_options_and_other_arguments_are_separated(arguments, values, others):
    options = parse_command_line(arguments, TABLE)
    assert (options.values, options.arguments) == (values, others)


def test_first_other_argument_ends_options_on_request():
    options = parse_command_line(["-q", "run", "-v"], TABLE, stops=True)
    assert (options.count("verbose"), options.arguments) == (0, ["run", "-v"])


def test_equals_sign_behind_a_letter_is_part_of_the_value_except_in_gos_programs():
    assert parse_command_line(["-o=x"], TABLE).get("output") == "=x"
    assert parse_command_line(["-o=x"], TABLE, strips_equals=True).get("output") == "x"


@pytest.mark.parametrize("argument", ["-x", "--unknown", "-qx"])
def test_unknown_option_is_refused(argument):
    with pytest.raises(UnknownOption):
        parse_command_line([argument], TABLE)


def test_missing_value_is_refused():
    with pytest.raises(MissingValue, match="--output"):
        parse_command_line(["--output"], TABLE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-x"], "unrecognized option: x"),
        (["--long"], "unrecognized option: long"),
        (["-n"], "option requires an argument -- 'n'"),
        (["--lines"], "option requires an argument: lines"),
    ],
)
def test_letters_are_a_short_form_of_a_table(arguments, message):
    assert parse_options(["-5", "-q"], "qn:", long={"lines": "n"}, numbers="n").get("n") == "5"
    with pytest.raises(ProgramUsageError, match=message) as caught:
        parse_options(arguments, "qn:", long={"lines": "n"}, code=3)
    assert caught.value.code == 3
