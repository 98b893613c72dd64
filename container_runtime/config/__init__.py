"""What a container is made from: its environment, and the files of its volumes, by its pod and the objects that the pod refers to. Pure."""
