"""The only place that knows aiohttp: sockets, headers, streams.

A module belongs here if it takes a request off the wire or puts an answer on it. What is asked for is carried out by
`rest/`, which knows no HTTP.
"""
