"""API services of other servers.

A module belongs here if it knows APIService objects as the server's own business. Requests are not proxied to other
servers yet: such an API service is said to be unavailable.
"""
