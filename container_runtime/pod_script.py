"""The annotations that script a simulated pod: `mockube.dev/ready-after: 10s`, `mockube.dev/crash-times: "2"` …

Pure. An invalid annotation is ignored, and named in `problems`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.apimachinery.tree import ReadOnlyTree

from .behavior import name_unknown
from .simulation_values import ASSUME, FAIL, UNKNOWN_PROGRAMS, WAIT

PREFIX: Final = "mockube.dev/"
NEVER: Final = float("inf")


class Script(Struct, frozen=True, kw_only=True):
    """The scripted behavior of a pod. The annotation of a field has its name with dashes; durations are in seconds."""

    start_after: float = 0
    """The delay of the start, from the time when the kubelet first sees the pod."""
    ready_after: float = 0
    """The delay of readiness after each start of a container; may be `never`."""
    startup_after: float = 0
    """The time after each start from which startup probes succeed; may be `never`."""
    fail_readiness_after: float = NEVER
    """The time after each start from which readiness probes fail."""
    fail_liveness_after: float = NEVER
    """The time after each start from which liveness probes fail."""
    fail_start: bool = False
    """Whether the containers fail at their start, before their commands run."""
    failing_starts: Mapping[str, bool] = field(default_factory=dict)
    """The same for single containers, by the names in `fail-start.NAME`."""
    fail_post_start: bool = False
    """Whether the containers' postStart hooks fail."""
    fail_pre_stop: bool = False
    exit_after: float | None = None
    """The duration of each run of a container, whatever its command."""
    fail_with_code: int | None = None
    """The exit code of each run, or of each run that crashes."""
    crash_times: int | None = None
    """The number of each container's first runs that crash; later runs are as without the script."""
    waiting_reason: str = ""
    """The reason for which containers wait without starting, such as `ImagePullBackOff`."""
    ignore_missing: bool = False
    """Whether containers start although a ConfigMap, a Secret or a key that they refer to is missing."""
    terminate_after: float = 0
    """The duration of the termination, at most the grace period."""
    hang_terminating: bool = False
    resize_after: float = 0
    """The duration of an in-place resize of the pod."""
    run: str | None = None
    """The script that containers run instead of their commands."""
    runs: Mapping[str, str] = field(default_factory=dict)
    """The scripts of single containers, by the names in `run.NAME`."""
    unknown_programs: str = ""
    """What becomes of programs that are not simulated; "" for what the namespace or the flag says."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """The bodies of HTTP responses, by the ports in `answer.PORT`."""
    problems: tuple[str, ...] = ()

    @property
    def has_probes(self) -> bool:
        """Whether the results of probes are scripted."""
        return bool(self.startup_after) or min(self.fail_readiness_after, self.fail_liveness_after) != NEVER

    @property
    def times_runs(self) -> bool:
        """Whether the ends, the starts or the readiness of containers are scripted."""
        return (
            self.has_probes
            or bool(self.ready_after or self.fail_start or self.failing_starts or self.waiting_reason)
            or self.exit_after is not None
            or self.fail_with_code is not None
            or self.crash_times is not None
        )

    def command(self, container: str) -> str | None:
        """Return the script that a container runs instead of its command; None if there is none."""
        return self.runs.get(container, self.run)

    def fails_at_start(self, container: str, restarts: int) -> bool:
        """Return whether a container fails at its start after `restarts` restarts."""
        fails = self.failing_starts.get(container, self.fail_start)
        return fails and (self.crash_times is None or restarts < self.crash_times)


def script_of(annotations: Mapping[str, str]) -> Script:
    fields: dict[str, Any] = {}
    problems = []
    for key, text in sorted(annotations.items()):
        if not key.startswith(PREFIX):
            continue
        name = key.removeprefix(PREFIX)
        kind, dot, suffix = name.partition(".")
        try:
            if dot and kind in _SUFFIXED:
                dest, parse = _SUFFIXED[kind]
                value = parse(text)
                fields.setdefault(dest, {})[suffix] = value
            else:
                fields[name.replace("-", "_")] = _PARSERS.get(name, _reject_unknown)(text)
        except ValueError as error:
            problems.append(f"{key}: {text!r}: {error}")
    return Script(**fields, problems=tuple(problems)) if fields or problems else _DEFAULT


_DEFAULT: Final = Script()


def runs_script(pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
    """Return whether a container of a pod runs a script in place of its command."""
    return script_of(meta.annotations(pod)).command(container["name"]) is not None


def name_unknown_of(pod: ReadOnlyTree, container: ReadOnlyTree, program: str) -> str:
    """Return the name of a program that is not simulated, of a command of a pod's container."""
    return name_unknown(container, program, has_script=runs_script(pod, container))


def _reject_unknown(_: str) -> None:
    raise ValueError("unknown annotation")


def _duration(text: str) -> float:
    try:
        span = parse_duration(text) / 10**9
    except DurationError as error:
        raise ValueError(str(error)) from None
    if span < 0:
        raise ValueError("must not be negative")
    return span


def _duration_or_never(text: str) -> float:
    return NEVER if text == "never" else _duration(text)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("must be a whole number")
    return int(text)


def _exit_code(text: str) -> int:
    code = _count(text)
    if not 1 <= code <= 255:
        raise ValueError("must be between 1 and 255")
    return code


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


def read_unknown_programs(text: str) -> str:
    if text not in UNKNOWN_PROGRAMS:
        raise ValueError(f"must be {ASSUME}, {WAIT} or {FAIL}")
    return UNKNOWN_PROGRAMS[text]


_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "start-after": _duration,
    "ready-after": _duration_or_never,
    "startup-after": _duration_or_never,
    "fail-readiness-after": _duration,
    "fail-liveness-after": _duration,
    "fail-start": _boolean,
    "fail-post-start": _boolean,
    "fail-pre-stop": _boolean,
    "exit-after": _duration,
    "fail-with-code": _exit_code,
    "crash-times": _count,
    "waiting-reason": str,
    "ignore-missing": _boolean,
    "terminate-after": _duration,
    "hang-terminating": _boolean,
    "resize-after": _duration,
    "run": str,
    "unknown-programs": read_unknown_programs,
}
_SUFFIXED: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "run": ("runs", str),
    "answer": ("answers", str),
    "fail-start": ("failing_starts", _boolean),
}
"""The fields and parsers of annotations whose names end with the name of a container or a port."""
assert {
    *(name.replace("-", "_") for name in _PARSERS),
    *(dest for dest, _ in _SUFFIXED.values()),
    "problems",
} == {*Script.__struct_fields__}
