"""API services of other servers.

A module belongs here if it knows APIService objects as the server's own business. The requests themselves are passed on
by `apiserver/http/service_proxy.py`.
"""
