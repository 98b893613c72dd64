"""Go's text templates, as far as Stage documents use them.

A module belongs here if it implements the language of templates; `stages/` uses them.
"""
