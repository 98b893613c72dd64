"""What a program of simulated containers is written with; an entry point of the group `mockube.programs` adds it.

A program is a function of a `Process`: a generator that yields effects and returns the exit code. It runs in the time of its
container, so that `Sleep` costs nothing, and it must do nothing but what it yields and what it reads of its process.
"""

from mockube.container_runtime.images.table import HttpRoute, PortBehavior
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Input,
    Output,
    Process,
    Program,
    Run,
    Sleep,
    UnknownProgram,
    read_input,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

__all__ = [
    "Effect",
    "FileError",
    "FileSystem",
    "HttpRoute",
    "Input",
    "Output",
    "PortBehavior",
    "Process",
    "Program",
    "Run",
    "Sleep",
    "UnknownProgram",
    "read_input",
    "write_text",
]
