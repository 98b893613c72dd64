"""The programs of this machine that a tool needs, which are looked for before it begins."""

import shutil


def require_programs(*names: str) -> None:
    """End this process with a sentence if a program is not on the PATH."""
    lacking = [name for name in names if shutil.which(name) is None]
    if lacking:
        raise SystemExit(f"this needs {', '.join(lacking)} on the PATH")
