"""Objects of one resource from one of its versions to another: from and to the version that is stored.

A module belongs here if it converts the objects of one resource, tree to tree. When that is done is `rest/`'s.
"""
