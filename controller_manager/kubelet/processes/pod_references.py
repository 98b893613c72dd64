"""The objects that the containers of one pod refer to, with cached tokens that are renewed before they expire."""

from typing import Final

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.containers.environment import References
from mockube.controller_manager.kubelet.server.references import ReferenceLoader

_RENEWAL_FRACTION: Final = 0.8
"""The fraction of a token's lifetime after which it is renewed, as by a kubelet."""


class PodReferences:
    def __init__(self, loader: ReferenceLoader, clock: Clock, pod: ReadOnlyTree) -> None:
        self._loader = loader
        self._clock = clock
        self.pod = pod
        """The latest version of the pod."""
        self._tokens: dict[tuple[str, int], tuple[str, float]] = {}

    async def load(self, container: ReadOnlyTree) -> References:
        now = self._clock.monotonic()
        valid = {key: token for key, (token, until) in self._tokens.items() if now < until}
        references = await self._loader.load(self.pod, container, valid)
        for key, token in references.tokens.items():
            if key not in valid:
                self._tokens[key] = token, now + _RENEWAL_FRACTION * key[1]
        return references
