"""An index of HorizontalPodAutoscalers by selector, to find several that select the same pod."""

from collections.abc import Iterable, Mapping
from typing import Final

from mockube.apimachinery.labels import NOTHING, Selector
from mockube.client.podview import PodView
from mockube.client.resources import Key

_ANY_LABEL: Final = ("", "")
"""The index key of selectors that require no exact label value."""


class Selectors:
    """The selectors of all autoscalers, indexed by a required label: a lookup's cost depends on the pod's labels."""

    def __init__(self) -> None:
        self._selectors: dict[Key, Selector] = {}
        self._buckets: dict[tuple[str, tuple[str, str]], dict[Key, Selector]] = {}

    def __len__(self) -> int:
        return len(self._selectors)

    def __contains__(self, key: Key) -> bool:
        return key in self._selectors

    def put(self, key: Key, selector: Selector = NOTHING) -> None:
        if self._selectors.get(key) != selector:
            self.remove(key)
            self._selectors[key] = selector
            self._buckets.setdefault(_bucket(key, selector), {})[key] = selector

    def remove(self, key: Key) -> None:
        selector = self._selectors.pop(key, None)
        if selector is not None:
            bucket = _bucket(key, selector)
            del self._buckets[bucket][key]
            if not self._buckets[bucket]:
                del self._buckets[bucket]

    def selecting(self, namespace: str, pods: Iterable[PodView]) -> set[Key]:
        """Return the keys of the autoscalers that select one of the pods."""
        return {key for pod in pods for key in self._selecting(namespace, pod.labels)}

    def _selecting(self, namespace: str, labels: Mapping[str, str]) -> Iterable[Key]:
        for pair in (_ANY_LABEL, *labels.items()):
            for key, selector in self._buckets.get((namespace, pair), {}).items():
                if selector.matches(labels):
                    yield key


def _bucket(key: Key, selector: Selector) -> tuple[str, tuple[str, str]]:
    for requirement in selector.requirements:
        if requirement.exact_value is not None:
            return key.namespace, (requirement.key, requirement.exact_value)
    return key.namespace, _ANY_LABEL
