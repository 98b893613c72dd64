"""Both programs of a named cluster in one process, which the operating system can fork. A file belongs here if it starts or forks it."""
