"""What the server of a known image uses: at rest, and for each request. Pure."""

from functools import lru_cache

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.images.table import Image, behavior_of
from mockube.container_runtime.load import FILL_RATE, NO_LOAD, Load, MemoryStep
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS


def server_of(container: ReadOnlyTree) -> Image | None:
    """Return the image whose server a container runs; None if it is unknown, or runs another program."""
    image = behavior_of(container)
    if image is None or container.get("command") or image.exit_code is not None or image.reads_input:
        return None
    arguments = container.get("args") or ("",)
    return None if arguments[0].rpartition("/")[2] in PROGRAMS else image


def at_rest(container: ReadOnlyTree) -> Load:
    image = server_of(container)
    return NO_LOAD if image is None else _load(image.memory.rest, image.cpu.rest)


def request_seconds(image: Image) -> float:
    """Return the seconds of CPU that a request takes."""
    return float(image.cpu.request)


@lru_cache(maxsize=256)
def _load(memory: float, cores: float) -> Load:
    if not memory and not cores:
        return NO_LOAD
    steps = (MemoryStep(memory / FILL_RATE, memory),) if memory else ()
    return Load(memory=steps, cores=cores, early_cores=cores)
