#!/bin/sh
# Starts a cluster in the background, waits until its nodes are ready, and gives later steps its kubeconfig.
set -eu
# The flags are separated by spaces.
# shellcheck disable=SC2086
set -- --detach "--nodes=$MOCKUBE_NODES" $MOCKUBE_FLAGS
if [ -n "$MOCKUBE_KUBERNETES_VERSION" ]; then set -- "$@" "--kubernetes-version=$MOCKUBE_KUBERNETES_VERSION"; fi
# They are variables of this script only: mockube reads such ones as flags.
unset MOCKUBE_NODES MOCKUBE_FLAGS MOCKUBE_KUBERNETES_VERSION
if ! mockube up "$@"; then
    "$(dirname "$0")/logs.sh"
    exit 1
fi
kubeconfig=$(mockube kubeconfig --path)
echo "KUBECONFIG=$kubeconfig" >>"$GITHUB_ENV"
echo "kubeconfig=$kubeconfig" >>"$GITHUB_OUTPUT"
