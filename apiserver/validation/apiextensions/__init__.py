"""CustomResourceDefinitions.

A module belongs here if it holds the rules of a part of a definition. What a definition then demands of its objects
is not validation of a kind, and stands elsewhere.

definitions    names, versions, conversion    versions      what versions say, alone or together
schemas        every schema in one            structural    what makes a schema structural
"""
