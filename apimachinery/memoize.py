"""A cache of a function's results by text, for small vocabularies whose words are looked up often.

Unlike `functools.lru_cache` it does not cache long texts, so that a client that sends many cannot fill the memory. A full
cache is cleared; the vocabulary is soon cached again.
"""

from collections.abc import Callable
from typing import TypeVar

Text = TypeVar("Text", bound=str | bytes)
Answer = TypeVar("Answer")


def memoize(
    max_entries: int, *, max_length: int
) -> Callable[[Callable[[Text], Answer]], Callable[[Text], Answer]]:
    """Return a decorator that caches a pure function. The result is the lookup itself: a hit costs one dictionary access."""

    def decorate(function: Callable[[Text], Answer]) -> Callable[[Text], Answer]:
        return _Answers(function, max_entries, max_length).__getitem__

    return decorate


class _Answers(dict[Text, Answer]):
    def __init__(self, function: Callable[[Text], Answer], max_entries: int, max_length: int) -> None:
        super().__init__()
        self._function = function
        self._max_entries = max_entries
        self._max_length = max_length

    def __missing__(self, text: Text) -> Answer:
        answer = self._function(text)
        if len(text) <= self._max_length:
            if len(self) >= self._max_entries:
                self.clear()
            self[text] = answer
        return answer
