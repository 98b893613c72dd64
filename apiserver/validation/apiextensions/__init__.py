"""CustomResourceDefinitions.

definitions    all of one but its schemas    versions    what a version says besides its schema
"""
