"""Finds out which namespaces containers that run as processes can have for themselves."""

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

from .command import CommandSpec, Identity
from .folders import add_programs
from .local_process import STDERR, read_chunk, start_process
from .mount_namespace import Mounts

LOG: Final = logging.getLogger(__name__)


class Support(NamedTuple):
    mounts: bool = False
    """A container has mounts of its own."""
    processes: bool = False
    """A container has a namespace of processes of its own."""


class NamespaceSupport:
    """Tries it once, when the first container starts: the kernel, a sandbox or a container's rights may forbid it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "namespace-support"
        self._answer: Support | None = None
        self._lock = asyncio.Lock()

    async def check(self) -> Support:
        async with self._lock:
            if self._answer is None:
                self._answer = await self._find() if sys.platform == "linux" else Support()
        return self._answer

    async def _find(self) -> Support:
        self._folder.mkdir(exist_ok=True)
        process_problem = await self._try(has_own_processes=True)
        if not process_problem:
            return Support(mounts=True, processes=True)
        mount_problem = await self._try(has_own_processes=False)
        if mount_problem:
            LOG.warning(
                "the volumes of containers that run as processes are below $MOCKUBE_ROOT only, because this machine allows no mount "
                "namespaces: %s",
                mount_problem,
            )
        LOG.warning(
            "containers that run as processes see all processes of this machine, and `kill -1` in one ends those of its user, because "
            "the machine allows no namespaces of processes: %s",
            process_problem,
        )
        return Support(mounts=not mount_problem)

    async def _try(self, *, has_own_processes: bool) -> str:
        """Run a program with namespaces of its own; return why it fails, "" if it does not."""
        if has_own_processes and not hasattr(os, "pidfd_open"):
            return "pidfd_open: Python does not have it"
        spec = CommandSpec(
            argv=[sys.executable, "-I", "-S", "-c", ""],
            environment={},
            directory=Path("/"),
            identity=Identity(),
            mounts=add_programs(Mounts(root=str(self._folder)), [Path(sys.executable)]),
            has_own_processes=has_own_processes,
        )
        try:
            process = await start_process(spec)
        except OSError as error:  # no pidfd_open
            return str(error)
        try:
            reason = (await read_chunk(process.outputs[STDERR])).decode("utf-8", "replace").strip()
            code = await process.wait()
        finally:
            await process.end()
        return reason or f"exit code {code}" if code else ""
