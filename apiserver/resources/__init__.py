"""What exists: one row of data for every resource.

A module belongs here if it says what a resource is (its names, scope, verbs, subresources, columns) or where its
behaviour differs from every other's. How verbs are carried out is `rest/`'s.
"""
