"""Every file of upstream in which a request asks an authorizer, or the rules of a user, with the code of ours that does so.

A file that only passes the question on to another authorizer is in `AUTHORIZERS`. The completeness is checked where the
sources of upstream are in the cache of Go modules.
"""

import importlib
import inspect
import os
import re
from pathlib import Path

import pytest

VERSIONS = {
    "apiserver": "apiserver@v0.37.2",
    "apiextensions-apiserver": "apiextensions-apiserver@v0.37.2",
    "kube-aggregator": "kube-aggregator@v0.37.2",
    "kubernetes": "kubernetes@v1.37.2",
}
FOLDERS = ("pkg", "plugin")
QUESTION = re.compile(
    r"\.(Authorize|RulesFor|IsAuthorizedForSignerName|ConfirmNoEscalation|ConfirmNoEscalationInternal)\("
)
OUR_QUESTION = re.compile(
    r"\b(authorize|decide|is_allowed|require|rules|escalation|_refusal|_is_allowed|_problem)\(|SubjectAccessReview"
)

_ADMISSION = "apiserver.admission"
_PARAMS = f"{_ADMISSION}.policies.param_access:PolicyParamAccess"
_ROLES = f"{_ADMISSION}.role_escalation:RoleEscalation"
_REVIEWS = "apiserver.registry.reviews.authorization:AccessReviews"
_CLAIMS = f"{_ADMISSION}.resource_claim_access"
_IMPERSONATION = "apiserver.request.impersonation"
OWNERS = {
    "apiserver/pkg/endpoints/filters/authorization.go": "apiserver.request.access:with_authorization",
    "apiserver/pkg/endpoints/filters/impersonation/impersonation.go": f"{_IMPERSONATION}:_Check.run",
    "apiserver/pkg/endpoints/filters/impersonation/constrained_impersonation.go": f"{_IMPERSONATION}:_TimedAuthorizer._decide",
    "apiserver/pkg/endpoints/filters/impersonation/mode.go": f"{_IMPERSONATION}:_Check.run",
    "apiserver/pkg/endpoints/handlers/delete.go": "apiserver.registry.delete:_authorize_unsafe_deletion",
    "apiserver/pkg/endpoints/handlers/update.go": "apiserver.registry.stages:authorize_creation",
    "apiserver/pkg/cel/library/authz.go": f"{_ADMISSION}.policies.activation:_answers",
    "kubernetes/pkg/certauthorization/certauthorization.go": f"{_ADMISSION}.certificates:may_use_signer",
    "kubernetes/plugin/pkg/admission/certificates/approval/admission.go": f"{_ADMISSION}.certificates:may_use_signer",
    "kubernetes/plugin/pkg/admission/certificates/ctbattest/admission.go": f"{_ADMISSION}.certificates:may_use_signer",
    "kubernetes/plugin/pkg/admission/certificates/signing/admission.go": f"{_ADMISSION}.certificates:may_use_signer",
    "kubernetes/pkg/registry/certificates/podcertificaterequest/strategy.go": f"{_ADMISSION}.certificates:may_use_signer",
    "kubernetes/plugin/pkg/admission/noderestriction/admission.go": f"{_ADMISSION}.node_restriction:_audience_problem",
    "kubernetes/plugin/pkg/admission/gc/gc_admission.go": (
        f"{_ADMISSION}.owner_references:OwnerReferencesPermissionEnforcement"
    ),
    "kubernetes/pkg/registry/resource/utils.go": f"{_CLAIMS}:_status_errors",
    "kubernetes/pkg/registry/rbac/escalation_check.go": f"{_ROLES}._is_allowed",
    "kubernetes/pkg/registry/rbac/validation/rule.go": f"{_ROLES}._problem",
    "kubernetes/pkg/registry/rbac/role/policybased/storage.go": f"{_ROLES}._check_role",
    "kubernetes/pkg/registry/rbac/clusterrole/policybased/storage.go": f"{_ROLES}._check_role",
    "kubernetes/pkg/registry/rbac/rolebinding/policybased/storage.go": f"{_ROLES}._check_binding",
    "kubernetes/pkg/registry/rbac/clusterrolebinding/policybased/storage.go": f"{_ROLES}._check_binding",
    "kubernetes/pkg/registry/core/pod/rest/authorize.go": "apiserver.request.connect:ConnectHandler._check_create",
    "kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy/authz.go": f"{_PARAMS}._policy_problem",
    "kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicy/authz.go": f"{_PARAMS}._policy_problem",
    "kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding/authz.go": (
        f"{_PARAMS}._binding_problem"
    ),
    "kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding/authz.go": (
        f"{_PARAMS}._binding_problem"
    ),
    "kubernetes/pkg/registry/authorization/subjectaccessreview/rest.go": f"{_REVIEWS}._answer",
    "kubernetes/pkg/registry/authorization/localsubjectaccessreview/rest.go": f"{_REVIEWS}._answer",
    "kubernetes/pkg/registry/authorization/selfsubjectaccessreview/rest.go": f"{_REVIEWS}._answer",
    "kubernetes/pkg/registry/authorization/selfsubjectrulesreview/rest.go": f"{_REVIEWS}.rules",
    "kubernetes/pkg/kubelet/server/server.go": "kubelet.server.authorization:KubeletAuthorizer._review",
}
"""By file of upstream, the function of ours that asks the same."""
ABSENT = {
    "kubernetes/pkg/registry/core/serviceaccount/storage/token.go": "APIServerWebhookAuthenticationToken",
}
"""By file of upstream that asks for what mockube does not serve, the name of this in docs/fidelity/access.md."""
AUTHORIZERS = {
    "apiserver/pkg/admission/plugin/policy/generic/policy_test_context.go",
    "apiserver/pkg/authorization/authorizer/conditions.go",
    "apiserver/pkg/authorization/authorizer/interfaces.go",
    "apiserver/pkg/authorization/authorizerfactory/builtin.go",
    "apiserver/plugin/pkg/authorizer/webhook/webhook.go",
    "kubernetes/pkg/auth/authorizer/abac/abac.go",
    "kubernetes/plugin/pkg/auth/authorizer/node/node_authorizer.go",
    "apiserver/pkg/admission/plugin/authorizer/caching_authorizer.go",
    "apiserver/pkg/authorization/metrics/metrics.go",
    "apiserver/pkg/authorization/union/union.go",
    "kubernetes/pkg/kubeapiserver/authorizer/reload.go",
    "kubernetes/plugin/pkg/auth/authorizer/rbac/rbac.go",
}


@pytest.mark.parametrize("owner", sorted({*OWNERS.values()}))
def test_function_of_upstream_question_calls_authorizer(owner):
    module, _, names = owner.partition(":")
    found = importlib.import_module(f"mockube.{module}")
    for name in names.split("."):
        found = getattr(found, name)
    assert OUR_QUESTION.search(inspect.getsource(found).partition("\n")[2])


@pytest.mark.parametrize("name", sorted(ABSENT.values()))
def test_upstream_question_without_counterpart_is_in_fidelity_page(name):
    page = Path(__file__).parents[4] / "docs/fidelity/access.md"
    assert name in page.read_text()


@pytest.mark.thorough
def test_every_upstream_question_has_owner_or_named_absence():
    modules = Path(os.environ.get("GOMODCACHE") or Path.home() / "go/pkg/mod") / "k8s.io"
    roots = {name: modules / folder for name, folder in VERSIONS.items()}
    missing = [root.name for root in roots.values() if not root.is_dir()]
    if missing:
        pytest.skip(f"the sources of upstream are not in the cache of Go modules: {', '.join(missing)}")
    found = {
        f"{name}/{path.relative_to(root)}"
        for name, root in roots.items()
        for folder in FOLDERS
        for path in (root / folder).rglob("*.go")
        if not path.name.endswith("_test.go") and QUESTION.search(path.read_text())
    }
    listed = {*OWNERS, *ABSENT, *AUTHORIZERS}
    assert (sorted(found - listed), sorted(listed - found)) == ([], [])
