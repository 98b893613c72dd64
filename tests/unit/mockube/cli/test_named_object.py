"""The object of a command: the kind and the name, with a slash between them or as two words."""

import pytest

from mockube.cli import blame, log, why
from mockube.cli.named_object import convert_name_errors, object_target
from mockube.cli.parsing import CommandParser
from mockube.failure import Missing, UsageError
from mockube.objects.errors import InvalidValue, KindNotServed


def read(module, *arguments):
    parser = CommandParser(prog="mockube x")
    module.add_flags(parser)
    return parser.read(arguments, {})


@pytest.mark.parametrize("module", [blame, log, why])
@pytest.mark.parametrize("words", [["pod/web"], ["pod", "web"]], ids=" ".join)
def test_object_is_one_word_or_two(module, words):
    target = object_target(read(module, *words, "-n", "a"))
    assert (target.kind, target.name, target.namespace) == ("pod", "web", "a")


def test_object_with_two_names_is_refused():
    with pytest.raises(UsageError, match='"pod/web" has a name already: leave out "db"'):
        object_target(read(why, "pod/web", "db"))


@pytest.mark.parametrize(("error", "failure"), [(InvalidValue, UsageError), (KindNotServed, Missing)])
def test_errors_of_names_are_failures_of_the_command(error, failure):
    with pytest.raises(failure, match="reason"), convert_name_errors():
        raise error("reason")


def test_one_argument_more_is_not_the_name_of_a_cluster(capsys):
    with pytest.raises(SystemExit):
        read(why, "pod", "web", "db")
    assert capsys.readouterr().err == 'mockube: unexpected argument "db" (see `mockube x --help`)\n'


def test_flag_after_the_separator_is_refused_with_the_reason(capsys):
    with pytest.raises(SystemExit):
        read(why, "--", "pod", "web", "--output=json")
    assert "--output is a flag of another subcommand, or stands behind --" in capsys.readouterr().err
