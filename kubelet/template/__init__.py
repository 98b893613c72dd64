"""Go's text templates: the subset that Stage documents use.

A module belongs here if it implements the language of templates. `stages/` renders them.
"""
