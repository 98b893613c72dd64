"""HTTP by aiohttp, which nothing below imports: listening, connections, the adapter to the request handler, streams.

A module belongs here if it needs aiohttp.
"""
