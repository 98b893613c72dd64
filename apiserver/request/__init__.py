"""What a request goes through that does not depend on HTTP: its URL, limits, deadlines, impersonation and rendering.

A module belongs here if it knows requests and not aiohttp. Sockets, headers and streams are in `http/`.
"""
