"""`mockube explore`: run an operator in forks of a cluster, disturb each run at another moment, and report what then is wrong.

A module belongs here if it is about plans, runs and findings. What other commands that run operators need is in `mockube/operators`.

scenario      what a run does: arrange, act, expect
plans         what is disturbed and when, which plans there are, and the smallest one that shows a finding
invariants    rules that hold at every revision
trace         what happens in a run: Changes and Requests
starters      how an operator is started: as a command, or as a function in a process of its own
fork_runner   the cluster that is arranged once, and a run in a fork of it
plan_run      one run of a plan: steps, conditions, end
operator_run  the operator of a run, and what is held back from it
moments       the Faults of a plan, and what is done when one takes place
disturbances  what is done then, or after a step
old_lists     lists and watches of the past, after a crash
steps         what a step does
judgements    what is wrong with a run
explorer      the undisturbed runs, all plans in parallel, the findings
findings      the file of a finding, and its report
api           `mockube.explore`
"""
