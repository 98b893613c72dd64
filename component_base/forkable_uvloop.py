"""The event loop of uvloop that can go on in a forked process. It is imported where uvloop is installed."""

import ctypes
from typing import Any, Final

import uvloop
import uvloop.loop

from .forkable_loop import ThreadWork, run_again

_LIBRARY: Final[Any] = uvloop.loop
_LIBUV: Final = ctypes.CDLL(_LIBRARY.__file__)


class ForkableUvloop(ThreadWork, uvloop.Loop):  # type: ignore[misc]  # as uvloop's own loop
    def problem(self) -> str:
        exports = hasattr(_LIBUV, "uv_loop_fork")
        return "" if exports else "this build of uvloop does not export uv_loop_fork: uninstall uvloop"

    def continue_after_fork(self) -> None:
        pointer_of: Any = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        fork: Any = _LIBUV.uv_loop_fork
        fork.restype, fork.argtypes = ctypes.c_int, [ctypes.c_void_p]
        if code := fork(pointer_of(_LIBRARY.libuv_get_loop_t_ptr(self), None)):
            raise OSError(-code, "uv_loop_fork failed")
        run_again(self)
