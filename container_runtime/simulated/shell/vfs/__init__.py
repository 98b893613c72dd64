"""The virtual file system of a simulated container. What belongs here answers one question about a path: who has it, where it is, who may use it."""
