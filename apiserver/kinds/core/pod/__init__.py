"""Pod and PodTemplate.

A module belongs here if it describes one of the two kinds, or a part of a pod's spec or status. Kinds that have pod templates
are outside, and so are the sources of volumes, in `volumes/`.

    pod, pod_template   the kinds                        strategy, defaults, columns, warnings   their parts
    validation  new pods, and updates of them            resize, status   updates of subresources
    spec        all rules of a spec, in upstream's order context, options what the rules depend on
    containers  containers; their parts are in           env, lifecycle, resources, volumes
    security    security contexts, with                  windows
    scheduling  affinity, spreading, tolerations         network          names, DNS, host ports
"""
