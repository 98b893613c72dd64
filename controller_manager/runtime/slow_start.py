"""Do many things of one kind, few at first: what fails for one probably fails for all, and is then tried only once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from apimachinery.status import ApiError

T = TypeVar("T")
Do = Callable[[T], Awaitable[None]]


async def slow_start(things: Sequence[T], do: Do[T]) -> ApiError | None:
    """1, 2, 4 … at a time. The batch with an error is the last one, and its first error the answer."""
    begun, batch = 0, 1
    error: ApiError | None = None
    while begun < len(things) and error is None:
        error = await at_once(things[begun : begun + batch], do)
        begun, batch = begun + batch, batch * 2
    return error


async def at_once(things: Sequence[T], do: Do[T]) -> ApiError | None:
    """All of them, whatever comes of each; the first error is the answer. What is no answer of the API is raised."""
    if len(things) == 1:
        return await _one(things[0], do)
    outcomes = await asyncio.gather(*(_one(thing, do) for thing in things), return_exceptions=True)
    refusals = []
    for outcome in outcomes:
        if isinstance(outcome, ApiError):
            refusals.append(outcome)
        elif outcome is not None:
            raise outcome
    return refusals[0] if refusals else None


async def _one(thing: T, do: Do[T]) -> ApiError | None:
    try:
        await do(thing)
    except ApiError as error:
        return error
    return None
