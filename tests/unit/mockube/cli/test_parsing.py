"""The parser of every command: environment variables, and errors for invalid arguments."""

import argparse

import pytest

from mockube.cli import main
from mockube.cli.parsing import CommandParser, suggestion, variable_names
from mockube.component_base.flags import non_negative_int


@pytest.fixture
def parser():
    parser = CommandParser(prog="mockube try")
    parser.add_argument("--data-dir")
    parser.add_argument("-c", "--count", type=non_negative_int, default=3)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--colour", choices=["red", "blue"])
    parser.add_argument("--label", action="append", default=[])
    parser.add_argument("--needed", required=True)
    parser.add_argument("--hidden", help=argparse.SUPPRESS)
    return parser


def read(parser, *arguments, **environment):
    variables = {f"MOCKUBE_{name}": text for name, text in environment.items()}
    return parser.read([*arguments], {"MOCKUBE_NEEDED": "here", **variables})


@pytest.mark.parametrize(
    ("environment", "dest", "value"),
    [
        ({"DATA_DIR": "/x"}, "data_dir", "/x"),
        ({"COUNT": "7"}, "count", 7),
        ({"KEEP": "1"}, "keep", True),
        ({"KEEP": "True"}, "keep", True),
        ({"KEEP": "no"}, "keep", False),
        ({"COLOUR": "blue"}, "colour", "blue"),
        ({"LABEL": "a"}, "label", ["a"]),
        ({"NEEDED": "there"}, "needed", "there"),
        ({"COUNT": ""}, "count", 3),
        ({}, "count", 3),
    ],
)
def test_environment_variable_sets_flag(parser, environment, dest, value):
    assert getattr(read(parser, **environment), dest) == value


@pytest.mark.parametrize(
    ("arguments", "environment", "dest", "value"),
    [
        (["--count=1"], {"COUNT": "7"}, "count", 1),
        (["--count=1"], {"COUNT": "nonsense"}, "count", 1),
        (["-c", "1"], {"COUNT": "7"}, "count", 1),
        (["--label=b"], {"LABEL": "a"}, "label", ["b"]),
        (["--data_dir=/y"], {"DATA_DIR": "/x"}, "data_dir", "/y"),
    ],
)
def test_flag_overrides_environment_variable(parser, arguments, environment, dest, value):
    assert getattr(read(parser, *arguments, **environment), dest) == value


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"COUNT": "x"}, 'MOCKUBE_COUNT: "x" is not a whole number, 0 or more'),
        ({"KEEP": "maybe"}, 'MOCKUBE_KEEP: "maybe" is neither true nor false'),
        ({"COLOUR": "green"}, 'MOCKUBE_COLOUR: "green" is not one of red, blue'),
    ],
)
def test_invalid_environment_variable_is_named(parser, environment, says, capsys):
    with pytest.raises(SystemExit) as ended:
        read(parser, **environment)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"mockube: {says} (see `mockube try --help`)\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--count", "x"], '-c/--count: "x" is not a whole number, 0 or more'),
        (["--conut=1"], "unknown flag --conut: did you mean --count?"),
        (["--zzz"], "unknown flag --zzz"),
        (["--hiddem"], "unknown flag --hiddem"),
        (["word"], 'unexpected argument "word"'),
        (["--data"], "unknown flag --data"),
        (["--keep=perhaps"], '--keep: "perhaps" is neither true nor false'),
        (["-keep"], "unknown flag -keep: did you mean --keep?"),
        (["-count=1"], "unknown flag -count: did you mean --count?"),
        (["\N{EM DASH}count=1"], 'unexpected argument "\N{EM DASH}count=1": did you mean --count=1?'),
        (["--colour=rde"], '--colour: "rde" is not one of red, blue: did you mean red?'),
    ],
)
def test_invalid_value_is_named(parser, arguments, says, capsys):
    with pytest.raises(SystemExit) as ended:
        read(parser, *arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"mockube: {says}")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("--keep", True),
        ("--keep=true", True),
        ("--keep=1", True),
        ("--keep=false", False),
        ("--keep=no", False),
    ],
)
def test_switch_takes_a_value_after_an_equals_sign(parser, argument, value):
    assert read(parser, argument).keep is value


def test_flags_of_subcommands_read_environment_variables():
    parser = CommandParser(prog="mockube try")
    below = parser.add_subparsers(dest="what").add_parser("save")
    below.add_argument("--far", type=non_negative_int)
    assert read(parser, "save", FAR="4").far == 4
    assert "--far" in parser.flags()


def test_flag_before_the_command_is_not_replaced_by_the_default_of_a_subcommand():
    parser = CommandParser(prog="mockube try")
    parser.add_subparsers(dest="what").add_parser("save").add_argument("--name", default="default")
    given = argparse.Namespace(name="blue")
    assert parser.read(["save"], {}, given).name == "blue"
    assert parser.read(["save", "--name=red"], {}, given).name == "red"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--name=x", "show"], ("show", "x", False, [])),
        (["--name", "x", "show", "-v"], ("show", "x", True, [])),
        (["-v", "--name=x", "show", "a"], ("show", "x", True, ["a"])),
        (["show", "--name=x", "a"], ("show", "x", False, ["a"])),
        (["--name=show", "show"], ("show", "show", False, [])),
    ],
)
def test_flag_of_a_subcommand_may_stand_before_it(arguments, expected):
    parser = CommandParser(prog="mockube try")
    show = parser.add_subparsers(dest="action").add_parser("show")
    show.add_argument("--name")
    show.add_argument("-v", action="store_true")
    show.add_argument("words", nargs="*")
    options = read(parser, *arguments)
    assert (options.action, options.name, options.v, options.words) == expected


SUBCOMMANDS = [
    (name, subcommand)
    for name, command_parser in main.parser()._subcommands_by_name().items()
    for subcommand, subparser in command_parser._subcommands_by_name().items()
    if "--name" in subparser.flags()
]


@pytest.mark.parametrize(("name", "subcommand"), SUBCOMMANDS)
def test_every_command_takes_the_name_of_the_cluster_before_its_subcommand(name, subcommand, capsys):
    command_parser = main._command_parser(main.COMMANDS[name], [])
    try:
        options = command_parser.read(["--name=x", subcommand], {})
    except SystemExit:
        assert "arguments are required" in capsys.readouterr().err
    else:
        assert options.name == "x"


def test_arguments_after_dashes_are_not_parsed():
    parser = CommandParser(prog="mockube try")
    parser.add_argument("--data-dir")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = read(parser, "--", "ls", "--data_dir=1", DATA_DIR="/x")
    assert (options.command[-1], options.data_dir) == ("--data_dir=1", "/x")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("-5m", ("default", "-5m", [])),
        ("-5m --name=blue", ("blue", "-5m", [])),
        ("-5m --name blue --keep", ("blue", "-5m", [])),
        ("--name=red -5m --name=blue -- ls --name=x", ("blue", "-5m", ["--", "ls", "--name=x"])),
        ("before --name=blue ls -l", ("blue", "before", ["ls", "-l"])),
        ("before ls --name=x", ("default", "before", ["ls", "--name=x"])),
        ("before -- --name=x", ("default", "before", ["--", "--name=x"])),
    ],
)
def test_flags_may_stand_behind_the_argument_before_a_command(arguments, expected):
    parser = CommandParser(prog="mockube at")
    parser.add_argument("--name", default="default")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("moment")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = read(parser, *arguments.split())
    assert (options.name, options.moment, options.command) == expected


def test_unknown_flag_behind_the_argument_before_a_command_is_refused(capsys):
    parser = CommandParser(prog="mockube at")
    parser.add_argument("--name")
    parser.add_argument("moment")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    with pytest.raises(SystemExit):
        read(parser, "-5m", "--nam=x", "--", "ls")
    assert "unknown flag --nam" in capsys.readouterr().err


def test_environment_variables_have_long_names_of_flag():
    action = argparse.ArgumentParser().add_argument("-n", "--node-name", "--node")
    assert [*variable_names(action)] == ["MOCKUBE_NODE_NAME", "MOCKUBE_NODE"]


def test_similar_word_is_suggested():
    assert suggestion("stauts", ["status", "up"]) == ": did you mean status?"
    assert suggestion("xyz", ["status", "up"]) == ""


def test_flags_ending_with_word_are_suggested_first():
    flags = ["--node-cidr-mask-size", "--simulate-nodes", "--http-port", "--secure-port"]
    assert suggestion("--nodes", flags) == ": did you mean --simulate-nodes?"
    assert suggestion("--port", flags) == ": did you mean --http-port or --secure-port?"


def test_other_spelling_sets_flag_but_no_variable(parser):
    parser.spellings = {"--folder": "--data-dir"}
    assert read(parser, "--folder", "/x", DATA_DIR="/y").data_dir == "/x"
    assert read(parser, "--folder=/x").set_flags >= {"data_dir"}
    assert read(parser, FOLDER="/x").data_dir is None


def test_epilog_is_on_its_page_and_on_that_with_everything(parser):
    parser.add_pages("pages", "long", epilogs={"long": lambda: "the names"})
    assert "the names" not in parser.format_help()
    assert parser.page("long").endswith("the names")
    assert "the names" in parser.page("all")
