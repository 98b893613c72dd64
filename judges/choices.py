"""What a judge is asked to judge: what judges nothing has not succeeded."""

from collections.abc import Sized


def require_some(chosen: Sized, choice: str) -> None:
    """End this process with a sentence if nothing was chosen."""
    if not chosen:
        raise SystemExit(f"nothing is judged: {choice}")
