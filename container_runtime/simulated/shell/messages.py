"""The words of error messages: those of dash, and those of bash where they differ."""

from collections.abc import Mapping
from typing import Final


class WordedError(Exception):
    """An error whose text is that of dash; `bash` is the text of bash."""

    def __init__(self, message: str, bash: str | None = None) -> None:
        super().__init__(message)
        self.bash = message if bash is None else bash


def message_of(error: Exception, *, is_bash: bool) -> str:
    return error.bash if is_bash and isinstance(error, WordedError) else str(error)


USAGES: Final[Mapping[str, str]] = {
    ".": ". filename [arguments]",
    "source": "source filename [arguments]",
    "declare": "declare [-aAfFgiIlnrtux] [name[=value] ...] or declare -p [-aAfFilnrtux] [name ...]",
    "typeset": "typeset [-aAfFgiIlnrtux] name[=value] ... or typeset -p [-aAfFilnrtux] [name ...]",
    "export": "export [-fn] [name[=value] ...] or export -p",
    "getopts": "getopts optstring name [arg ...]",
    "kill": "kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]",
    "local": "local [option] name[=value] ...",
    "mapfile": "mapfile [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]",
    "printf": "printf [-v var] format [arguments]",
    "read": "read [-ers] [-a array] [-d delim] [-i text] [-n nchars] [-N nchars] [-p prompt] [-t timeout] [-u fd] [name ...]",
    "readarray": "readarray [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]",
    "readonly": "readonly [-aAf] [name[=value] ...] or readonly -p",
    "set": "set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]",
    "trap": "trap [-lp] [[arg] signal_spec ...]",
    "ulimit": "ulimit [-SHabcdefiklmnpqrstuvxPRT] [limit]",
    "unset": "unset [-f] [-v] [-n] [name ...]",
}
"""The arguments of bash's builtins, as bash prints them."""


def usage(name: str) -> str:
    """Return the line with which bash describes the arguments of a builtin."""
    return f"{name}: usage: {USAGES[name]}"
