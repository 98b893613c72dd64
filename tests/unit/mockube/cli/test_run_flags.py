"""The flags of `mockube run` that it passes to the API server."""

import pytest

from mockube.cli import run
from mockube.cli.parsing import CommandParser
from mockube.cli.run import _history_flags


def read(*arguments):
    parser = CommandParser(prog="mockube run")
    run.add_flags(parser)
    return parser.read([*arguments, "--", "true"], {})


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        ([], ()),
        (["--history=2h"], ("--history=2h",)),
        (["--report=run.md"], ("--history=all",)),
        (["--report=run.md", "--history=64Mi"], ("--history=64Mi",)),
    ],
)
def test_history_is_that_of_the_flag_and_all_of_it_for_a_report(arguments, flags):
    assert _history_flags(read(*arguments)) == flags


def test_wrong_history_is_refused_before_anything_starts(capsys):
    with pytest.raises(SystemExit):
        read("--history=long")
    assert '--history: "long" is no age such as 1h' in capsys.readouterr().err
