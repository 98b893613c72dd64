"""What becomes of programs that are not simulated: by the annotation of a pod, that of its namespace, or the flag. Pure."""

from collections.abc import Callable, Mapping
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree

from .pod_script import PREFIX, read_unknown_programs, script_of
from .simulation_values import ASSUME

ANNOTATION: Final = f"{PREFIX}unknown-programs"
_NONE: Final[Mapping[str, str]] = {}


class UnknownPrograms:
    """Which of `ASSUME`, `WAIT` and `FAIL` holds for a pod."""

    def __init__(
        self,
        default: str = ASSUME,
        annotations_of_namespace: Callable[[str], Mapping[str, str]] = lambda _: _NONE,
    ) -> None:
        self._default = default
        self._annotations_of_namespace = annotations_of_namespace

    def of(self, pod: ReadOnlyTree) -> str:
        own = script_of(meta.annotations(pod)).unknown_programs
        return own or self._of_namespace(meta.namespace(pod)) or self._default

    def _of_namespace(self, name: str) -> str:
        text = self._annotations_of_namespace(name).get(ANNOTATION)
        try:
            return "" if text is None else read_unknown_programs(text)
        except ValueError:
            return ""


ASSUMES_ALL: Final = UnknownPrograms()
