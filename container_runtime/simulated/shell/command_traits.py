"""What the syntax tree says of a command: whether `set -e` checks it, its short name, and what `$(<file)` stands for."""

from msgspec.structs import replace

from .syntax import (
    ArithmeticCommand,
    Command,
    CommandGroup,
    CommandList,
    Conditional,
    Pipeline,
    Redirect,
    SimpleCommand,
    Text,
)


def is_checked(command: Command) -> bool:
    """Return whether a failure of a command ends the shell under `set -e`; the parts of others are checked themselves."""
    match command:
        case SimpleCommand() | Conditional() | ArithmeticCommand():
            return True
        case Pipeline(negated=negated):
            return not negated
        case CommandGroup(subshell=subshell):
            return subshell
        case _:
            return False


def reader_of_file(script: Command) -> Command:
    """Return the command that `$(<file)` stands for: `cat <file`. Other scripts are returned unchanged."""
    match script:
        case CommandList(items=[(_, Pipeline(commands=[inner], negated=False) | inner)]):
            reader = reader_of_file(inner)
            return script if reader is inner else reader
        case SimpleCommand(assignments=(), words=(), redirects=(Redirect(descriptor=0, operator="<"),)):
            return replace(script, words=((Text("cat", quoted=True),),))
        case _:
            return script


def part_name(command: Command) -> str:
    """Return a short text for a command in lists of processes."""
    match command:
        case SimpleCommand(words=[first, *_]) if isinstance(first, tuple):
            return "".join(getattr(part, "text", "$") for part in first)
        case _:
            return "sh"
