"""HTTP by aiohttp, which no other package imports: sockets, headers, streams.

A module belongs here if it needs aiohttp.
"""
