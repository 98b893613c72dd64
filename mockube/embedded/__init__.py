"""A control plane inside this process. A file belongs here if it wires, runs or observes one, or injects faults into it.

It must not change global state of the process: no signal handlers, no lasting settings of the garbage collector, no event
loop policy, no handler of the root logger.
"""
