"""The failure of a plugin or an extender, which fails the attempt to schedule a pod, and no other one."""


class PluginFailure(Exception):
    """A plugin raised an error, or returned what it may not. The message is that of upstream's framework."""
