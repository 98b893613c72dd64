#!/bin/sh
# Judges an operator, writes the reports, and adds the one in Markdown to the summary of the job; its exit code is that of mockube.
set -eu
if [ -z "$OPERATOR_MANIFESTS" ] || [ -z "$OPERATOR_SAMPLE" ] || [ -z "$OPERATOR_COMMAND" ]; then
    echo "mockube: the inputs \`manifests\`, \`sample\` and \`command\` are required" >&2
    exit 2
fi
summary=$(mktemp -d)/summary.md
# The manifests and the flags are separated by spaces.
# shellcheck disable=SC2086
set -- $OPERATOR_FLAGS
for file in $OPERATOR_MANIFESTS; do set -- "$@" "--filename=$file"; done
if [ -n "$OPERATOR_BASELINE" ]; then set -- "$@" "--baseline=$OPERATOR_BASELINE"; fi
if [ -n "$OPERATOR_REPORTS" ]; then
    mkdir -p "$OPERATOR_REPORTS"
    for suffix in xml sarif json html; do set -- "$@" "--report=$OPERATOR_REPORTS/test-operator.$suffix"; done
fi
code=0
# The command is a line of a shell, which waits for the operator's own end after SIGTERM.
mockube test-operator "--sample=$OPERATOR_SAMPLE" "--report=$summary" "$@" -- sh -c "trap : TERM; $OPERATOR_COMMAND" || code=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$summary" ]; then cat "$summary" >>"$GITHUB_STEP_SUMMARY"; fi
exit "$code"
