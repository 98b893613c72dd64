"""Write mockube/objects/awaited.py: the methods of mockube/objects/blocking.py as coroutine functions.

make python-api
"""

import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "mockube/objects"
SOURCE, RESULT = FOLDER / "blocking.py", FOLDER / "awaited.py"

DOCSTRING = '''"""The methods of `blocking` as coroutine functions, for `AsyncCluster`: generated from that file by `make python-api`."""
'''
REPLACEMENTS = (
    (r'\A""".*?"""\n', DOCSTRING),
    (r"\bObjectMethods\b", "AwaitedObjectMethods"),
    (r"\bBlockingSender\b", "AwaitedSender"),
    (r"\bAbstractContextManager\b", "AbstractAsyncContextManager"),
    (r"`with ", "`async with "),
    (r"(?m)^    def (?!port_forward)", "    async def "),
    (r"return self\._do\(", "return await self._do("),
)


def awaited_methods() -> str:
    text = SOURCE.read_text()
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text, flags=re.DOTALL)
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(RESULT), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    RESULT.write_text(awaited_methods())
