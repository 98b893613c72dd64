"""The limits of scripts in Python: one that needs more ends as one that has no memory left, or never ends."""

from typing import Final

MAX_DEPTH: Final = 999
"""Calls of functions within each other, as many as Python allows; they do not nest on the stack."""
MAX_GENERATORS: Final = 100
"""Generators that are executed within each other, each of which is a few calls of Python."""
MAX_THREADS: Final = 50
MAX_PARTS: Final = 40_000
"""The parts of a script that wait for each other, such as iterators that read from iterators."""
MAX_NESTED: Final = 990
"""Containers within each other of a value that is printed, compared or copied."""
MAX_BASES: Final = 200
"""The classes from which a class inherits."""
MAX_WORK: Final = 20_000_000
"""The nanoseconds that an operation takes at once; longer ones are divided, or refused."""
MAX_TOKENS: Final = 7_000
"""The tokens of a statement with all that is in it, which is parsed at once."""
MAX_TEXT: Final = 4096
"""The part of a repeated text that is stored."""
MAX_STORED: Final = 1 << 22
"""Characters of a text that is stored."""
MAX_ELEMENTS: Final = 1_000_000
"""Elements of a list, a dictionary and the like."""
MAX_BITS: Final = 1 << 18
"""The bits of a number."""
MAX_HEAP: Final = 64 << 20
"""The bytes of all values of a script together."""
MAX_COLLISIONS: Final = 500
"""The keys of dictionaries whose hash another key has."""
MAX_MEMORY: Final = 1 << 46
"""The size of a value beyond which Python itself raises MemoryError."""
