"""
PURE. The webhook: whether it runs, is called and is trusted, and whether its records are frozen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence.findings import Finding, look, ok, unknown, wrong
from gpufence.names import SYSTEM_NAMESPACE, WEBHOOK_CONFIGURATION, WEBHOOK_SERVICE
from gpufence.shape import Object, as_list, as_object, as_text, objects
from kubectl_gpufence.doctor.server import INSTALL
from kubectl_gpufence.words import counted, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubectl_gpufence.doctor.facts import Facts

HOOKS: Final = tuple(
    f"{name}.gpufence.io" for name in ("observe.pods", "cap.pods", "evict.pods", "bindings")
)
POLICIES: Final = ("gpufence-mode", "gpufence-frozen-annotations")

_WEBHOOK = "webhook"
_TRUST = "certificates"
_POLICY = "policies"
_SOON_SECONDS = 14 * 86_400.0
_ASK = "ask an administrator to run this"
_CERTS = (
    f"run `kubectl -n {SYSTEM_NAMESPACE} create job --from=cronjob/gpufence-certs certs-now` and "
    "look at its log"
)
_LOGS = f"see `kubectl -n {SYSTEM_NAMESPACE} describe deployment {WEBHOOK_SERVICE}` and its logs"


def check_webhook(facts: Facts) -> Iterator[Finding]:
    yield _deployment(facts)
    yield _endpoints(facts)
    yield from _configuration(facts)
    yield from _serving(facts)
    yield from _policies(facts)


def _deployment(facts: Facts) -> Finding:
    asked = facts.deployment
    if asked.hidden:
        return unknown(_WEBHOOK, asked.hidden, _ASK)
    if asked.value is None:
        return wrong(_WEBHOOK, f"there is no Deployment {WEBHOOK_SERVICE}", INSTALL)
    wanted = _number(as_object(asked.value.get("spec"), "spec").get("replicas"), 1)
    ready = _number(as_object(asked.value.get("status"), "status").get("readyReplicas"), 0)
    said = f"{ready} of {counted(wanted, 'replica')} ready"
    if not ready:
        return wrong(_WEBHOOK, f"{said}: new pods get no limits", _LOGS)
    return ok(_WEBHOOK, said) if ready >= wanted else look(_WEBHOOK, said, _LOGS)


def _endpoints(facts: Facts) -> Finding:
    asked = facts.slices
    if asked.hidden:
        return unknown(_WEBHOOK, asked.hidden, _ASK)
    ready = sum(
        len(as_list(endpoint.get("addresses"), "endpoints[].addresses"))
        for item in asked.value or []
        for endpoint in objects(item.get("endpoints"), "endpoints")
        if as_object(endpoint.get("conditions"), "conditions").get("ready") is not False
    )
    if ready:
        return ok(_WEBHOOK, f"Service {WEBHOOK_SERVICE} has {counted(ready, 'endpoint')}")
    return wrong(
        _WEBHOOK,
        f"Service {WEBHOOK_SERVICE} has no ready endpoint: the API server reaches nobody",
        f"see `kubectl -n {SYSTEM_NAMESPACE} get service,endpointslices`; the Service must select "
        "the webhook's pods",
    )


def _configuration(facts: Facts) -> Iterator[Finding]:
    asked = facts.configuration
    if asked.hidden:
        yield unknown(_WEBHOOK, asked.hidden, _ASK)
        return
    if asked.value is None:
        said = f"there is no MutatingWebhookConfiguration {WEBHOOK_CONFIGURATION}: nobody calls it"
        yield wrong(_WEBHOOK, said, INSTALL)
        return
    hooks = {_name(hook): hook for hook in objects(asked.value.get("webhooks"), "webhooks")}
    missing = [name for name in HOOKS if name not in hooks]
    if missing:
        yield wrong(_WEBHOOK, f"these hooks are not registered: {', '.join(missing)}", INSTALL)
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
    yield from _trust(facts, [name for name in HOOKS if name in hooks])


def _trust(facts: Facts, hooks: list[str]) -> Iterator[Finding]:
    """
    Judge each hook's caBundle; equal findings of several hooks are one.
    """
    found: dict[tuple[bool, str], list[str]] = {}
    for name in hooks:
        found.setdefault(_bundle(facts, name), []).append(name)
    for (good, said), names in found.items():
        which = "every hook" if len(names) == len(hooks) else ", ".join(names)
        text = f"caBundle of {which} {said}"
        yield ok(_TRUST, text) if good else wrong(_TRUST, text, _CERTS)


def _bundle(facts: Facts, hook: str) -> tuple[bool, str]:
    valid = facts.trusted.get(hook, ())
    if valid is None:
        return False, "holds no certificate that can be read"
    if not valid:
        return False, "is empty: the API server trusts no webhook"
    current = [until for since, until in valid if since <= facts.now < until]
    if not current:
        return False, "holds only certificates that are not valid now"
    left = max(current) - facts.now
    several = f"{len(valid)} CAs, " if len(valid) > 1 else ""
    return left > _SOON_SECONDS, f"is valid ({several}{duration(left)} left)"


def _serving(facts: Facts) -> Iterator[Finding]:
    for pod, left in facts.serving.items():
        if left is None:
            said = f"{pod} has no certificate to serve with, or does not say"
            yield look(_TRUST, said, _CERTS)
        elif left <= 0:
            yield wrong(_TRUST, f"the certificate that {pod} serves has expired", _CERTS)
        elif left <= _SOON_SECONDS:
            said = f"the certificate that {pod} serves lasts only {duration(left)} more"
            yield look(_TRUST, said, _CERTS)
        else:
            yield ok(_TRUST, f"the certificate that {pod} serves lasts {duration(left)} more")


def _policies(facts: Facts) -> Iterator[Finding]:
    for name in POLICIES:
        policy, binding = facts.policies.get(name), facts.bindings.get(name)
        if policy is None or binding is None:
            continue
        hidden = policy.hidden or binding.hidden
        if hidden:
            yield unknown(_POLICY, hidden, _ASK)
        elif policy.value is None:
            yield wrong(_POLICY, f"there is no ValidatingAdmissionPolicy {name}", INSTALL)
        elif binding.value is None:
            yield wrong(_POLICY, f"policy {name} is not bound, so it checks nothing", INSTALL)
        else:
            yield ok(_POLICY, f"{name} is bound")


def _name(hook: Object) -> str:
    return as_text(hook.get("name"), "webhooks[].name")


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
