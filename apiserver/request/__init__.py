"""The way of a request, free of transport: `handler.py` lists its filters, each of which is in a module of its own.

A module belongs here if it knows requests and not sockets, which are in `http/`.
"""
