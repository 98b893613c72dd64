"""Request handling, independent of the transport: `handler.py` lists the filters, each in a module of its own.

A module belongs here if it handles requests; sockets are in `http/`.
"""
