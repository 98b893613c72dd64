"""Discovery documents: groups, versions, resources, the server's version.

A module belongs here if it builds documents from the resources. It uses neither HTTP nor the store.
"""
