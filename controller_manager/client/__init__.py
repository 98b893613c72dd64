"""Send requests to an API server: transport, credentials, rate limits, retries and typed verbs.

A module belongs here if it is needed to make one request or to hold one stream. It knows no cache and no controller.
"""
