#!/bin/sh
# Prints the logs of the cluster in a group that GitHub folds; nothing if there are none, as after a start that was refused.
if logs=$(mockube logs --tail=500 2>/dev/null) && [ -n "$logs" ]; then
    echo "::group::Logs of mockube"
    printf '%s\n' "$logs"
    echo "::endgroup::"
fi
