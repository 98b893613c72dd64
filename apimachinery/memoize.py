"""A cache of a function's answers by text, for small vocabularies whose words are looked up again and again.

Unlike `functools.lru_cache` it keeps no long texts: they are rare, and a client that sends many cannot fill the
memory. A full cache is emptied, and the vocabulary is soon in it again.
"""

from collections.abc import Callable
from typing import TypeVar

Text = TypeVar("Text", bound=str | bytes)
Answer = TypeVar("Answer")


def memoize(
    max_entries: int, *, max_length: int
) -> Callable[[Callable[[Text], Answer]], Callable[[Text], Answer]]:
    """Decorate a pure function; the caller calls the lookup itself, so a cached answer costs a dictionary's time."""

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
