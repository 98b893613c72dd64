"""Go's text templates, as far as Stage documents use them.

A module belongs here if it knows the language of templates. What a template is asked for stands in `stages/`.
"""
