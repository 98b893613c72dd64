import pytest

from mockube.operators.crashes import crash_of

NIL = "panic: runtime error: invalid memory address or nil pointer dereference"


@pytest.mark.parametrize(
    ("code", "log", "crash"),
    [
        pytest.param(2, f"starting\n{NIL} [recovered]\n\tpanic: x\n", f"{NIL} [recovered]", id="nil pointer"),
        pytest.param(
            2,
            "panic: interface conversion: interface {} is cache.DeletedFinalStateUnknown, not *v1.Secret\n\ngoroutine 7 [running]:\n",
            "panic: interface conversion: interface {} is cache.DeletedFinalStateUnknown, not *v1.Secret",
            id="type",
        ),
        pytest.param(2, "fatal error: concurrent map writes\n", "fatal error: concurrent map writes", id="map"),
        pytest.param(139, "starting\n", "it was ended by SIGSEGV", id="signal"),
        pytest.param(137, "starting\n", "", id="killed"),
        pytest.param(2, 'panic: Get "https://127.0.0.1:6443/api": EOF\n', "", id="gives up"),
        pytest.param(1, 'log: "panic: runtime error: in a text"\n', "", id="in a line"),
        pytest.param(255, "", "", id="error"),
    ],
)  # fmt: skip
def test_crash_is_told_from_a_program_that_gives_up(code, log, crash):
    assert crash_of(code, log) == crash
