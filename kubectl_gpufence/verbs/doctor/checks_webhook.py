"""PURE. What is installed: checks of API server, the caller's rights, webhook and policies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpufence.errors import Finding, look, ok, unknown, wrong
from gpufence.names import WEBHOOK_CONFIGURATION, WEBHOOK_SERVICE
from gpufence.shape import Object, as_list, as_object, as_text, objects
from gpufence.text import duration, printable
from kubectl_gpufence.verbs.doctor.installation import HOOKS, replicas
from kubectl_gpufence.verbs.doctor.starting import starting
from kubectl_gpufence.view import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubectl_gpufence.verbs.doctor.installation import Installation

_OLDEST: Final = (1, 30)
_IMPERSONATING: Final = (1, 36)
_SOON_SECONDS: Final = 14 * 86_400.0

_SERVER = "API server"
_RIGHTS = "permissions"
_WEBHOOK = "webhook"
_TRUST = "certificates"
_POLICY = "policies"
_ASK = "ask an administrator to run this"
_INSTALL = "apply the manifests of gpufence: kubectl apply -k deploy/base"
_CA = (
    "apply the manifests of gpufence again (with Helm: `helm upgrade`): the install job has the "
    "API server trust the CA"
)


def check_server(installation: Installation) -> Iterator[Finding]:
    yield _version(installation.version.value or {})
    system = installation.system
    if system.hidden:
        yield unknown(_SERVER, system.hidden, _ASK)
    elif system.value is None:
        yield wrong(_SERVER, f"namespace {installation.home} does not exist", _INSTALL)
    else:
        yield ok(_SERVER, f"namespace {installation.home} exists")


def check_rights(installation: Installation) -> Iterator[Finding]:
    """Find what the caller may not do that this plugin needs."""
    missing = [question for question, allowed in installation.rights.items() if not allowed]
    if missing:
        yield look(
            _RIGHTS,
            f"you may not {', '.join(missing)}: that part of the answers is missing",
            "bind roles gpufence-viewer (deploy/base/viewer), or have an administrator run this",
        )
    elif installation.rights:
        yield ok(_RIGHTS, "you may see everything this plugin asks for")


def check_webhook(installation: Installation) -> Iterator[Finding]:
    """
    Find whether the webhook runs, is called and is trusted, and whether its records are frozen.
    """
    if elsewhere := installation.elsewhere:
        yield ok(_WEBHOOK, f"it runs outside of this cluster, at {printable(elsewhere)}")
    else:
        found = [_deployment(installation)]
        found += [] if installation.away else [_endpoints(installation)]
        yield from starting(found, young=installation.young)
    yield from _configuration(installation)
    yield from starting(_serving(installation), young=installation.young)
    yield from _policies(installation)


def _version(answer: Object) -> Finding:
    text = as_text(answer.get("gitVersion"), "version.gitVersion")
    match = re.match(r"v?(\d{1,4})\.(\d{1,4})", text, re.ASCII)
    if match is None:
        return unknown(_SERVER, f'its version "{text}" cannot be read', "see `kubectl version`")
    version = int(match[1]), int(match[2])
    if version < _OLDEST:
        return wrong(
            _SERVER,
            f"Kubernetes {text} is too old",
            "upgrade to 1.30 or later: matchConditions and admission policies are needed",
        )
    if version < _IMPERSONATING:
        return look(
            _SERVER,
            f"Kubernetes {text}: agents cannot be confined to their own node before 1.36",
            "use the overlay with plain RBAC, and read there what it cannot promise",
        )
    return ok(_SERVER, f"Kubernetes {text}")


def _deployment(installation: Installation) -> Finding:
    deployment = installation.deployment
    if deployment.hidden:
        return unknown(_WEBHOOK, deployment.hidden, _ASK)
    if deployment.value is None:
        return wrong(_WEBHOOK, f"there is no Deployment {WEBHOOK_SERVICE}", _INSTALL)
    ready, wanted = replicas(deployment.value)
    text = f"{ready} of {counted(wanted, 'replica')} ready"
    logs = f"see `{installation.kubectl} describe deployment {WEBHOOK_SERVICE}` and its logs"
    if not ready:
        return wrong(_WEBHOOK, f"{text}: new pods get no limits", logs)
    return ok(_WEBHOOK, text) if ready >= wanted else look(_WEBHOOK, text, logs)


def _endpoints(installation: Installation) -> Finding:
    slices = installation.slices
    if slices.hidden:
        return unknown(_WEBHOOK, slices.hidden, _ASK)
    ready = sum(
        len(as_list(endpoint.get("addresses"), "endpoints[].addresses"))
        for item in slices.value or []
        for endpoint in objects(item.get("endpoints"), "endpoints")
        if as_object(endpoint.get("conditions"), "conditions").get("ready") is not False
    )
    if ready:
        return ok(_WEBHOOK, f"Service {WEBHOOK_SERVICE} has {counted(ready, 'endpoint')}")
    return wrong(
        _WEBHOOK,
        f"Service {WEBHOOK_SERVICE} has no ready endpoint: the API server cannot reach it",
        f"see `{installation.kubectl} get service,endpointslices`; the Service must select "
        "the webhook's pods",
    )


def _configuration(installation: Installation) -> Iterator[Finding]:
    configuration = installation.configuration
    if configuration.hidden:
        yield unknown(_WEBHOOK, configuration.hidden, _ASK)
        return
    if configuration.value is None:
        text = (
            f"there is no MutatingWebhookConfiguration {WEBHOOK_CONFIGURATION}: it is never called"
        )
        yield wrong(_WEBHOOK, text, _INSTALL)
        return
    hooks = {
        as_text(hook.get("name"), "webhooks[].name"): hook
        for hook in objects(configuration.value.get("webhooks"), "webhooks")
    }
    missing = [name for name in HOOKS if name not in hooks]
    if missing:
        yield wrong(_WEBHOOK, f"these hooks are not registered: {', '.join(missing)}", _INSTALL)
    else:
        yield ok(_WEBHOOK, f"{counted(len(HOOKS), 'hook')} registered")
    failing = [name for name, hook in hooks.items() if hook.get("failurePolicy") != "Ignore"]
    if failing:
        yield wrong(
            _WEBHOOK,
            f"failurePolicy is not Ignore for {', '.join(failing)}: without the webhook no such "
            "pod can be created",
            "set failurePolicy: Ignore; gpufence must never be the cause of an outage",
        )
    trusted = _trust(installation, [name for name in HOOKS if name in hooks])
    yield from starting(trusted, young=installation.young)


def _trust(installation: Installation, hooks: list[str]) -> Iterator[Finding]:
    """Judge each hook's caBundle; equal findings of several hooks are one."""
    judged: dict[tuple[bool, str], list[str]] = {}
    for name in hooks:
        judged.setdefault(_bundle(installation, name), []).append(name)
    for (good, text), names in judged.items():
        which = "every hook" if len(names) == len(hooks) else ", ".join(names)
        sentence = f"caBundle of {which} {text}"
        yield ok(_TRUST, sentence) if good else wrong(_TRUST, sentence, _CA)


def _bundle(installation: Installation, hook: str) -> tuple[bool, str]:
    validity = installation.trusted.get(hook, ())
    if validity is None:
        return False, "holds no certificate that can be read"
    if not validity:
        return False, "is empty: the API server trusts no webhook"
    ends = [until for since, until in validity if since <= installation.now < until]
    if not ends:
        return False, "holds only certificates that are not valid now"
    left = max(ends) - installation.now
    several = f"{len(validity)} CAs, " if len(validity) > 1 else ""
    return left > _SOON_SECONDS, f"is valid ({several}{duration(left)} left)"


def _serving(installation: Installation) -> Iterator[Finding]:
    again = f"{installation.kubectl} create job --from=cronjob/gpufence-certs certs-now"
    remedy = f"run `{again}` and look at its log"
    for pod, left in installation.serving.items():
        certificate = f"the certificate that {pod} serves"
        if left is None:
            text = f"{pod} has no certificate to serve with, or does not say"
            yield look(_TRUST, text, remedy)
        elif left <= 0:
            yield wrong(_TRUST, f"{certificate} has expired", remedy)
        elif left <= _SOON_SECONDS:
            yield look(_TRUST, f"{certificate} lasts only {duration(left)} more", remedy)
        else:
            yield ok(_TRUST, f"{certificate} lasts {duration(left)} more")


def _policies(installation: Installation) -> Iterator[Finding]:
    """Judge all policies; those with the same fault and remedy are one finding."""
    policies, bindings = installation.policies, installation.bindings
    hidden = {name: policies[name].hidden or bindings[name].hidden for name in policies}
    for text in dict.fromkeys(filter(None, hidden.values())):
        yield unknown(_POLICY, text, _ASK)
    seen = [name for name, text in hidden.items() if not text]
    missing = [name for name in seen if policies[name].value is None]
    loose = [name for name in seen if name not in missing and bindings[name].value is None]
    if missing:
        text = f"there is no ValidatingAdmissionPolicy {', '.join(missing)}"
        yield wrong(_POLICY, text, _INSTALL)
    if loose:
        text = f"without a binding, so that nothing is checked: {', '.join(loose)}"
        yield wrong(_POLICY, text, _INSTALL)
    well = [name for name in seen if name not in missing and name not in loose]
    yield from (ok(_POLICY, f"{name} is bound") for name in well)
