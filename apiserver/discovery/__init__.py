"""What the server tells of itself: groups, versions, resources, its own version.

A module belongs here if it makes documents out of the resources that there are. It knows no HTTP and no store.
"""
