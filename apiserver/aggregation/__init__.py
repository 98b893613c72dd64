"""API services of other servers.

A module belongs here if it handles APIService objects. The requests themselves are passed on
by `apiserver/http/service_proxy.py`.
"""
