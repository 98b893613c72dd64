"""`mockube demo`: a Deployment on a cluster of its own, which loses a node and gets it back."""

import argparse
import shutil
import sys
from threading import Event
from typing import Final

from mockube.kubectl import KUBECTL, how_to_install

from .output import is_colored
from .parsing import CommandParser

PAUSE_SECONDS: Final = 0.9
"""The pause after each command at a terminal. With it the demonstration takes about 20 seconds."""
END: Final = """
The cluster is gone. Start one of your own: `mockube up --detach`, then `mockube kubectl get nodes`."""


def add_flags(parser: CommandParser) -> None:
    """Add no flags."""


def run(_options: argparse.Namespace) -> int:
    kubectl = shutil.which(KUBECTL)
    print("Starting a Kubernetes cluster.", flush=True)
    if kubectl is None:
        print(f"kubectl is not installed, and mockube sends its requests: {how_to_install()}.", flush=True)
    from .demonstration import Output, demonstrate  # noqa: PLC0415 - the import takes longer than the first lines

    output = Output(colored=is_colored(), pause=_pause if sys.stdout.isatty() else lambda: None)
    demonstrate(output, kubectl)
    print(END)
    return 0


def _pause() -> None:
    Event().wait(PAUSE_SECONDS)
