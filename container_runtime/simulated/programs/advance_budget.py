"""How much of commands is computed in advance: as much as fits into a step of the event loop, beside which nothing else of the process runs."""

from typing import Final

from mockube.container_runtime.simulated.shell.outside import OutsideAnswer
from mockube.container_runtime.simulated.shell.process import CommandStart, Effect, NetworkCall, Run

_WORK: Final = 250.0
"""The commands that are computed in advance at once: 15 ms."""
_OTHER_EFFECT: Final = 0.25
"""What an effect that is no command takes of that."""


class AdvanceBudget:
    """What may still be computed in advance, of all commands of one computation together.

    It says nothing of a command that needs more, but that it runs in real time, where it shares the event loop.
    """

    def __init__(self) -> None:
        self._left = _WORK

    def advance(self, execution: Run, reply: bytes | None = None) -> Effect:
        """Continue a command up to its next effect; raise `OutsideAnswer` if that lies outside, or the budget is spent."""
        effect = execution.send(reply) if reply else next(execution)
        self._left -= 1 if isinstance(effect, CommandStart) else _OTHER_EFFECT
        if self._left < 0 or isinstance(effect, NetworkCall):
            raise OutsideAnswer
        return effect
