"""How a program that has exited by itself has crashed: by a mistake of its own, and not because it gave up, as many operators do after an error."""

import re
import signal
from typing import Final

from mockube.component_base.operating_system import shell_exit_code

_GO_ERROR: Final = re.compile(
    r"^(?:panic: (?:runtime error|interface conversion)|fatal error): .{1,300}", re.MULTILINE
)
"""What the runtime of Go prints. `panic(err)` in `main` is how programs give up."""
_SIGNALS: Final = {
    shell_exit_code(-number): number.name
    for number in (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
}


def crash_of(code: int, log: str) -> str:
    """Return what says that a program has crashed, by its exit code as in a shell and what it printed; "" if it has not."""
    if found := _GO_ERROR.search(log):
        return found[0].rstrip()
    return f"it was ended by {_SIGNALS[code]}" if code in _SIGNALS else ""
