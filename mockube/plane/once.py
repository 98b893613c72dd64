"""`mockube run -- CMD`: a control plane for one command, gone when the command has ended.

The command shares the terminal: what a terminal sends at Ctrl+C reaches it directly, and whether it ends is its own
choice. Any other signal to stop becomes a SIGTERM to it, and a second one kills everything.
"""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from apimachinery.clock import Clock
from controller_manager.runtime.kubeconfig import read
from mockube.plane.launch import Launch, control_plane, throwaway
from mockube.plane.processes import ControlPlane, NotReady, first, shell_code
from mockube.reach import reaching

START_TIMEOUT = 60.0

Tell = Callable[[str], None]


async def run_once(command: Sequence[str], *, nodes: int, packs: str, clock: Clock, tell: Tell) -> int:
    """The command's exit code, or 128 and the signal that has ended it; `tell` is told how long things took."""
    began = clock.monotonic()

    def told(what: str) -> None:
        tell(f"{what} after {clock.monotonic() - began:.2f} s")

    with tempfile.TemporaryDirectory(prefix="mockube-") as folder:
        launch = throwaway(Path(folder), nodes=nodes, packs=packs)
        plane = control_plane(launch)
        plane.heed_signals()
        try:
            async with plane.running():
                await first(_wait_usable(launch, told), plane.wait_over())
                if not plane.is_over:
                    return await _run(command, plane, launch)
        except NotReady:
            if not plane.stopped_by:
                _show(launch.log)
        return plane.code(stopped=128 + plane.stopped_by)


async def _wait_usable(launch: Launch, told: Tell) -> None:
    async with reaching(read(launch.kubeconfig)) as reach:
        await reach.ask_version()
        told("the first answer")
        await reach.wait_usable(launch.nodes, seconds=START_TIMEOUT)
        told(f"{launch.nodes} nodes ready")


async def _run(command: Sequence[str], plane: ControlPlane, launch: Launch) -> int:
    if _shares_terminal():
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)
    async with plane.process(command, {"KUBECONFIG": str(launch.kubeconfig)}) as process:
        await plane.wait_over()
    assert process.returncode is not None
    return shell_code(process.returncode)


def _show(log: Path | None) -> None:
    if log is not None:
        sys.stderr.write(log.read_text())


def _shares_terminal() -> bool:
    """Whether Ctrl+C reaches the command without our doing."""
    return sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
