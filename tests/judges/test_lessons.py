"""`make lessons`: how the steps of a page are read, and how outputs are compared. No page is replayed."""

import pytest

from judges.lessons.__main__ import read_settings
from judges.lessons.comparison import missing_lines
from judges.lessons.pages import read_samples, read_steps

PAGE = """
1. Create it:

   ```shell
   kubectl apply -f a.yaml
   ```

   The output is similar to this:

   ```
   NAME   READY
   a      1/1
   ```

2. A file, which is no output:

   ```yaml
   kind: Pod
   ```

<!--
```shell
rm -rf /
```
-->

```console
$ kubectl get pods
No resources found in default namespace.
$ kubectl get \\
    services
```

```bash
# a comment
kubectl get nodes
```

```shell
kubectl get pod b
NAME   READY
b      0/1
```

```shell
kubectl get pod c
```

You see:

```shell
NAME   READY
c      0/1
```

```go
fmt.Println()
```
"""


@pytest.mark.parametrize(
    ("command", "is_run"),
    [
        ("kubectl apply -f https://k8s.io/examples/pods/a.yaml", True),
        ("kubectl get pods\nkubectl logs a", True),
        ("kubectl exec a -- curl http://web:8080/", True),
        ("cat <<EOF >./kustomization.yaml\nresources: []\nEOF", True),
        ("kubectl get pod <name>", False),
        ("kubectl get pods\nsudo ls", False),
        ("kubectl port-forward pod/a 8080", False),
        ("kubectl get pods --watch", False),
        ("curl https://example.com/a", False),
    ],
)
def test_commands_that_a_replay_cannot_run_are_left_out(command, is_run):
    _, not_run = read_settings()
    assert any(pattern.search(command) for pattern in not_run) is not is_run


def test_examples_that_a_page_shows_are_found_by_their_file_names():
    page = '{{% code_sample file="service/a.yaml" %}} text {{< codenew language="yaml" file="b.yaml" >}} {{< note >}}'
    assert read_samples(page) == {"a.yaml": "service/a.yaml", "b.yaml": "b.yaml"}


def test_steps_of_a_page_have_their_outputs():
    assert [(step.command, step.output) for step in read_steps(PAGE)] == [
        ("kubectl apply -f a.yaml", "NAME   READY\na      1/1"),
        ("kubectl get pods\nkubectl get \\\n    services", "No resources found in default namespace."),
        ("# a comment\nkubectl get nodes", ""),
        ("kubectl get pod b", "NAME   READY\nb      0/1"),
        ("kubectl get pod c", "NAME   READY\nc      0/1"),
    ]


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        pytest.param(
            "web-5d4f6c8b7d-x2k4p 1/1 Running 0 5s",
            "web-86c57db685-bbbbb 1/1 Running 0 2m",
            id="name and age",
        ),
        pytest.param("web   ClusterIP  10.0.0.7", "web ClusterIP 10.96.1.2", id="address"),
        pytest.param("pod/a created\n...\n", "pod/a created", id="ellipsis"),
        pytest.param("b", "a\nb\nc", id="more is printed"),
    ],
)
def test_outputs_that_differ_in_values_are_the_same(shown, printed):
    assert missing_lines(shown, printed) == []


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        pytest.param("pod/a created", 'Error from server: the pod "a" is invalid', id="error"),
        pytest.param("a 0/1 CrashLoopBackOff", "a 1/1 Running", id="state"),
        pytest.param("a", "", id="nothing"),
    ],
)
def test_outputs_with_another_state_differ(shown, printed):
    assert missing_lines(shown, printed) == [shown]
