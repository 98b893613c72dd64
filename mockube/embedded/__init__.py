"""A control plane inside this process. A file belongs here if it wires, runs, watches or disturbs one.

Nothing here may change what belongs to the whole process: no signal handlers, no garbage collector's settings, no
policy of event loops, no handler of the root logger.
"""
