#!/bin/sh
# Prints the logs of the cluster in a group that GitHub folds.
echo "::group::Logs of mockube"
mockube logs --tail=500 || true
echo "::endgroup::"
