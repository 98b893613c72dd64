"""Attach: sends the output of a running container to a client, and forwards its input, all of it even if it has left."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from mockube.component_base.supervision import run_until, run_with, start

from .output import OUTPUT_END, AttachedOutput
from .streams import InputStream, Streams, StreamsClosed

ForwardInput = Callable[[InputStream], Coroutine[Any, Any, None]]


async def attach(
    output: AttachedOutput,
    streams: Streams,
    forward_input: ForwardInput | None,
    *,
    background_tasks: "Sequence[asyncio.Task[None]]" = (),
) -> None:
    """Run until the container ends, or until the client has left and its input is forwarded."""
    input_task = None
    if streams.stdin is not None and forward_input is not None:
        input_task = start("input of a container", _forward(streams.stdin, forward_input))
    elif streams.stdin is not None:
        streams.stdin.discard()

    async def serve() -> None:
        has_ended = await run_until(streams.departure.wait(), _send_output(output, streams))
        output.close()
        if not has_ended and input_task is not None:
            await asyncio.wait([input_task])

    await run_with(serve(), background_tasks=[*background_tasks, *([input_task] if input_task else [])])


async def _forward(source: InputStream, forward_input: ForwardInput) -> None:
    try:
        await forward_input(source)
    finally:
        source.discard()


async def _send_output(output: AttachedOutput, streams: Streams) -> bool:
    """Send the output to its end; return False if the client leaves before that."""
    try:
        while (piece := await output.get()) != OUTPUT_END:
            await streams.write(*piece)
    except StreamsClosed:
        return False
    return True
