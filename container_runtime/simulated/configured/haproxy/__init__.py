"""HAProxy: its configuration, and what a server answers with it. Pure.

A module belongs here if it reads a configuration of HAProxy, or answers a request by one.
"""
