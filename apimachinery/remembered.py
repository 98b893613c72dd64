"""Answers remembered by the text that they are for, where a small vocabulary asks for the same again and again.

Unlike `functools.lru_cache` this keeps no long texts: they are rarities, and whoever sends many shall not fill the
memory. When there are too many all are forgotten, and the vocabulary is soon known again.
"""

from collections.abc import Callable
from typing import TypeVar

Text = TypeVar("Text", bound=str | bytes)
Answer = TypeVar("Answer")


def remembered(most: int, *, longest: int) -> Callable[[Callable[[Text], Answer]], Callable[[Text], Answer]]:
    """Decorates a pure function; what is called is the lookup itself, so a known answer costs a dictionary's time."""

    def decorate(function: Callable[[Text], Answer]) -> Callable[[Text], Answer]:
        return _Answers(function, most, longest).__getitem__

    return decorate


class _Answers(dict[Text, Answer]):
    def __init__(self, function: Callable[[Text], Answer], most: int, longest: int) -> None:
        super().__init__()
        self._function = function
        self._most = most
        self._longest = longest

    def __missing__(self, text: Text) -> Answer:
        answer = self._function(text)
        if len(text) <= self._longest:
            if len(self) >= self._most:
                self.clear()
            self[text] = answer
        return answer
