"""The failures of builtins."""

from .messages import WordedError, usage


class BuiltinError(WordedError):
    """A builtin fails with a message; a POSIX shell ends if the builtin is a special one, unless the failure is mild."""

    def __init__(
        self,
        message: str,
        code: int = 2,
        *,
        bash: str | None = None,
        bash_code: int | None = None,
        is_mild: bool = False,
    ) -> None:
        super().__init__(message, bash)
        self.code = code
        self.bash_code = code if bash_code is None else bash_code
        self.is_mild = is_mild


class UsageError(BuiltinError):
    """A builtin has too few arguments, and bash prints only which it has."""


class MissingFile(BuiltinError):
    """The file that `.` of bash should read does not exist, which bash reports without the builtin's name."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 1)


def invalid_option(builtin: str, letter: str) -> BuiltinError:
    return BuiltinError(f"Illegal option -{letter}", bash=f"-{letter}: invalid option\n{usage(builtin)}")


def invalid_name(name: str, argument: str) -> BuiltinError:
    """Return the error for a name of a variable, which is all or the beginning of an argument."""
    return BuiltinError(
        f"{name}: bad variable name", bash=f"`{argument}': not a valid identifier", bash_code=1
    )


def invalid_number(text: str, bash_code: int = 1) -> BuiltinError:
    return BuiltinError(
        f"Illegal number: {text}", bash=f"{text}: numeric argument required", bash_code=bash_code
    )
