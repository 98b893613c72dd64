"""Request handling, independent of the transport: `handler.py` lists the filters.

A module belongs here if it handles requests; sockets are in `http/`. Filters of one subject share a module.
"""
