"""Finds out whether processes of this machine can have mount namespaces of their own."""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Final

from .command import CommandSpec, Identity
from .local_process import STDERR, read_chunk, start_process
from .mount_namespace import Mounts

LOG: Final = logging.getLogger(__name__)


class MountSupport:
    """Tries it once, when the first container starts: the kernel, a sandbox or a container's rights may forbid it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "mount-support"
        self._answer: bool | None = None
        self._lock = asyncio.Lock()

    async def check(self) -> bool:
        async with self._lock:
            if self._answer is None:
                self._answer = sys.platform == "linux" and await self._try()
        return self._answer

    async def _try(self) -> bool:
        """Run a program with mounts of its own."""
        self._folder.mkdir()
        spec = CommandSpec(
            argv=[sys.executable, "-I", "-S", "-c", ""],
            environment={},
            directory=Path("/"),
            identity=Identity(),
            mounts=Mounts(root=str(self._folder)),
        )
        process = await start_process(spec)
        try:
            reason = await read_chunk(process.outputs[STDERR])
            code = await process.wait()
        finally:
            await process.end()
        if code:
            LOG.warning(
                "the volumes of containers that run as processes are below $MOCKUBE_ROOT only, because this machine allows no mount "
                "namespaces: %s",
                reason.decode("utf-8", "replace").strip(),
            )
        return code == 0
