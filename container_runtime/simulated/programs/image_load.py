"""What the server of a known image uses: at rest, and for each request. Pure."""

import re
from functools import lru_cache
from math import inf
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.images.table import Image, ImageTable
from mockube.container_runtime.load import FILL_RATE, NO_LOAD, MemoryStep, RunLoad
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS

_HEAP: Final = re.compile(r"(?:-Xmx|HEAP_SIZE=)(\d{1,9})([kmgKMG])")
"""The option of Java, and the variables of its servers, that set the size of the heap."""
_UNITS: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_BESIDES_HEAP: Final = 1.25
"""The memory of a server of Java in relation to its heap."""


def server_of(images: ImageTable, container: ReadOnlyTree) -> Image | None:
    """Return the image whose server a container runs; None if it is unknown, or runs another program."""
    image = images.behavior_of(container)
    if image is None or container.get("command") or image.exit_code is not None or image.reads_input:
        return None
    arguments = container.get("args") or ("",)
    program = arguments[0].rpartition("/")[2]
    return None if program in PROGRAMS and program not in image.servers else image


def at_rest(images: ImageTable, container: ReadOnlyTree) -> RunLoad:
    image = server_of(images, container)
    if image is None:
        return NO_LOAD
    memory = float(image.memory.rest)
    return _load(min(memory, _heap_bound(container)) if memory else 0.0, float(image.cpu.rest))


def _heap_bound(container: ReadOnlyTree) -> float:
    """Return how much a server of Java uses at most whose heap the container sets; infinite if nothing sets it."""
    settings = [
        f"{entry['name']}={entry.get('value') or ''}"
        for entry in container.get("env") or ()
        if entry.get("value")
    ]
    heaps = [
        int(size) * _UNITS[unit.lower()]
        for setting in (*settings, *(container.get("args") or ()))
        for size, unit in _HEAP.findall(setting)
    ]
    return min(heaps, default=inf) * _BESIDES_HEAP


def request_seconds(image: Image) -> float:
    """Return the seconds of CPU that a request takes."""
    return float(image.cpu.request)


@lru_cache(maxsize=256)
def _load(memory: float, cores: float) -> RunLoad:
    if not memory and not cores:
        return NO_LOAD
    steps = (MemoryStep(memory / FILL_RATE, memory),) if memory else ()
    return RunLoad(memory=steps, cores=cores, early_cores=cores)
