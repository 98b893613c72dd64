"""Request handling, free of transport: `handler.py` lists the filters, each in a module of its own.

A module belongs here if it knows requests and not sockets, which are in `http/`.
"""
