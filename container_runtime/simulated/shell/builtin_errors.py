"""The failure of a builtin."""


class BuiltinError(Exception):
    """A builtin fails with a message; a POSIX shell ends if the builtin is a special one, unless the failure is mild."""

    def __init__(self, message: str, code: int = 2, *, is_mild: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.is_mild = is_mild
