"""OpenAPI, versions 2 and 3: the schemas and operations of kinds, for explain, validation and apply.

A module belongs here if it builds these documents from definitions and rows of resources. Each is built at its first
request.
"""
