"""The controller of launch priorities, which lets the containers of a pod start one after the other.

A module belongs here if it writes the barriers for which containers wait; the server's pack adds the waiting.
"""
