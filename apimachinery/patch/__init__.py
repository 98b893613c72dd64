"""JSON merge patch and strategic merge patch, and what patches share, as pure functions on JSON trees.

A module belongs here if both processes apply the patch. Trees are never mutated: the new tree shares the unchanged parts
with the old one. The types are those of `mockube.apimachinery.schema.model`; JSON patch and server-side apply are in
`mockube.apiserver.patch`.
"""
