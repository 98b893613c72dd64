"""Import what is needed once processes answer, while they start."""

import asyncio
from importlib import import_module
from types import ModuleType


def importing(name: str) -> asyncio.Task[ModuleType]:
    return asyncio.create_task(asyncio.to_thread(import_module, name))
