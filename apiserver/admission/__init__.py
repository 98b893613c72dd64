"""Admission: plugins that change or reject a write after it is decoded and before it is stored.

A module belongs here if it is an admission plugin or several that are alike, the chain that runs them, the records of their
configurations, or what several of them ask of an object or a request.
`chain.py` lists the plugins in upstream's order; those that no flag can disable are made in `parts/admission.py`.
"""
