"""kubectl in a container: it acts on the API as the pod's ServiceAccount.

A module belongs here if it behaves as a part of kubectl: its commands, options, messages and output.
"""
