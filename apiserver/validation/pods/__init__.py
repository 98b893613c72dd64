"""Pods: their specs, on their own and in templates, and what may become of them.

A module belongs here if it holds the rules of a part of a pod's spec or status, or of a way to change them. Workloads
that carry templates of pods are outside, and so are the sources of volumes, in `volumes/`.

    spec        all rules of a spec, in upstream's order     template     templates, and PodTemplates
    surroundings   what of a spec its parts depend on        leniency     what old pods may keep
    containers  every kind of container; their parts are in  env, mounts, probes, ports, resources, restarts
    security    security contexts, with                      profiles, windows, sysctls
    scheduling  affinity, spreading, tolerations             network      names, DNS, host ports
    kinds       the rules of Pod and PodTemplate             changes, status, resize    updates
"""
