"""HorizontalPodAutoscaler: `horizontal_pod_autoscaler.py` has its records, one for each version.

A module belongs here if it describes HorizontalPodAutoscalers.

    validation                    objects of v2, the stored version
    conversion, annotations       between v1 and v2
"""
