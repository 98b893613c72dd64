"""The annotations that script a simulated pod: `mockube.dev/ready-after: 10s`, `mockube.dev/crash-times: "2"` …

Pure. An invalid annotation is ignored, and named in `problems`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.controller_manager.kubelet.pod_lifecycle.program import Program

PREFIX: Final = "mockube.dev/"
NEVER: Final = float("inf")
_BY_NAME: Final = {"run": "runs", "answer": "answers"}
"""Annotations whose names end with that of a container or a port."""


class Script(Struct, frozen=True, kw_only=True):
    """Each field is set by the annotation of its name, with dashes; spans are in seconds."""

    start_after: float = 0
    """After the pod was seen on its node."""
    ready_after: float = 0
    """After each start of a container; `never` is possible."""
    startup_after: float = 0
    """So long after each start a startup probe succeeds first; `never` is possible."""
    fail_readiness_after: float = NEVER
    """So long after each start a readiness probe fails."""
    fail_liveness_after: float = NEVER
    """The same of a liveness probe."""
    fail_post_start: bool = False
    """Whether the hooks of its containers fail."""
    fail_pre_stop: bool = False
    exit_after: float | None = None
    """How long each run of a container lasts, whatever its command."""
    fail_with_code: int | None = None
    """With which code each run ends, or each run that crashes."""
    crash_times: int | None = None
    """So many runs of each container crash; those after live as they would have."""
    waiting_reason: str = ""
    """Containers do not start, and wait for this reason: `ImagePullBackOff`."""
    terminate_after: float = 0
    """After the deletion, and within the grace period."""
    hang_terminating: bool = False
    resize_after: float = 0
    """How long a resize of the pod in place is in progress."""
    run: str | None = None
    """The script that containers run instead of their commands."""
    runs: Mapping[str, str] = field(default_factory=dict)
    """The same for single containers: `run.NAME`."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """What is answered over HTTP on a port: `answer.PORT`."""
    problems: tuple[str, ...] = ()

    @property
    def has_probes(self) -> bool:
        """Whether the results of probes are scripted."""
        return bool(self.startup_after) or min(self.fail_readiness_after, self.fail_liveness_after) != NEVER

    def command(self, container: str) -> str | None:
        """The script that a container runs instead of its command."""
        return self.runs.get(container, self.run)

    def program(self, own: Program, restarts: int) -> Program:
        """What a container really does in the run after so many restarts."""
        if self.crash_times is not None:
            fails = restarts < self.crash_times
        else:
            fails = self.fail_with_code is not None
        if fails:
            code = 1 if self.fail_with_code is None else self.fail_with_code
            return Program(seconds=self.exit_after or 0, exit_code=code)
        if self.exit_after is not None:
            return Program(seconds=self.exit_after, exit_code=0, stop_code=own.stop_code)
        return own


def script_of(annotations: Mapping[str, str]) -> Script:
    fields: dict[str, Any] = {}
    problems = []
    for key, text in sorted(annotations.items()):
        if not key.startswith(PREFIX):
            continue
        name = key.removeprefix(PREFIX)
        kind, dot, about = name.partition(".")
        if dot and kind in _BY_NAME:
            fields[_BY_NAME[kind]] = {**fields.get(_BY_NAME[kind], {}), about: text}
            continue
        try:
            fields[name.replace("-", "_")] = _READERS.get(name, _refuse_annotation)(text)
        except ValueError as error:
            problems.append(f"{key}: {text!r}: {error}")
    return Script(**fields, problems=tuple(problems)) if fields or problems else _PLAIN


_PLAIN: Final = Script()


def _refuse_annotation(_: str) -> None:
    raise ValueError("unknown annotation")


def _span(text: str) -> float:
    try:
        span = parse_duration(text) / 10**9
    except DurationError as error:
        raise ValueError(str(error)) from None
    if span < 0:
        raise ValueError("must not be negative")
    return span


def _span_or_never(text: str) -> float:
    return NEVER if text == "never" else _span(text)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("must be a whole number")
    return int(text)


def _code(text: str) -> int:
    code = _count(text)
    if not 1 <= code <= 255:
        raise ValueError("must be between 1 and 255")
    return code


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "start-after": _span,
    "ready-after": _span_or_never,
    "startup-after": _span_or_never,
    "fail-readiness-after": _span,
    "fail-liveness-after": _span,
    "fail-post-start": _truth,
    "fail-pre-stop": _truth,
    "exit-after": _span,
    "fail-with-code": _code,
    "crash-times": _count,
    "waiting-reason": str,
    "terminate-after": _span,
    "hang-terminating": _truth,
    "resize-after": _span,
    "run": str,
}
assert {name.replace("-", "_") for name in _READERS} | {"problems", "runs", "answers"} == {
    *Script.__struct_fields__
}
