"""What kube-apiserver fills in where a client left something out, beyond what OpenAPI tells of it.

A module belongs here if it is the table of one API group (of a part of it, where the group is large), what such a
table needs to decide, or the walk that carries the tables out. What a strategy sets, such as a generation or a cluster
IP, is in `resources/strategies/`; what a custom resource's schema declares is in `crd/`.

    defaulter   the way to the places of a kind where something is filled in
    tables      all tables together          table     what a table is made of
    pods        pod templates, containers    volumes   volumes and claims       services, core   the rest of ""
    image       tags of images               quantities, pod_resources          amounts that a pod asks for
"""
