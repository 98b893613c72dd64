"""CustomResourceDefinitions.

definitions    names, versions, conversion    versions      what versions say, alone or together
schemas        every schema in one            structural    what makes a schema structural
"""
