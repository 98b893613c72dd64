"""Send requests to an API server: transport, credentials, rate limits, retries and typed verbs.

A module belongs here if it is needed to send one request or to read one stream. It is independent of caches and
controllers.
"""
