"""Runs commands in a simulated container without a clock: sleeping takes no time."""

from datetime import UTC, datetime

from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.process import Input, Output, Sleep

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def run(*argv, host, sent=b"", environment=None, maximum=100_000):
    """Return stdout, stderr, the exit code, and the seconds slept."""
    running = run_command(host, argv, environment or {"NAME": "kube"})
    written, answer = {1: b"", 2: b""}, None
    for _ in range(maximum):
        try:
            effect = running.send(answer) if answer else next(running)
        except StopIteration as ended:
            return written[1].decode(), written[2].decode(), ended.value, host.elapsed
        answer = None
        if isinstance(effect, Output):
            written[effect.descriptor] += effect.data
        elif isinstance(effect, Sleep):
            host.elapsed += effect.seconds
        elif isinstance(effect, Input):
            answer, sent = sent[: effect.limit], sent[effect.limit :]
    raise AssertionError("it does not end")
