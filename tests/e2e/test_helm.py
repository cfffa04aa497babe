"""From nothing to evictions with Helm and one's own registry, as the manual types it, and back."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from gpufence import names
from simulator.controlplane import Assets
from simulator.progress import Progress
from simulator.published import HELM
from tests.e2e.registry import REGISTRY, Installed, forget, section, typed
from tests.e2e.site import OVERLAY, QUICK, SYSTEM, RealSite, notes, pod
from tests.support.programs import CHART, Helm
from tests.support.site import AGENT, WEBHOOK

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

# Beside what the manual says: the cards of this cluster, and an agent in a hurry.
HERE = [
    "--set=simulated=true",
    *(f"--set-string=settings.agent.{setting}" for setting in QUICK),
]


@dataclass(frozen=True)
class ByHelm(Installed):
    """A cluster into which Helm has put gpufence."""

    helm: Helm


def five_commands(team: str, registry: str) -> list[list[str]]:
    said = {"TEAM": team, "deploy/chart": str(CHART), REGISTRY: registry}
    return typed(section("docs/install.md", "## With Helm"), said)


def wait_for_programs(site: RealSite) -> None:
    site.system("wait", "job", "--all", "--for=condition=complete", "--timeout=100s")
    site.system("rollout", "status", f"deployment/{WEBHOOK}", "--timeout=100s")
    site.system("rollout", "status", f"daemonset/{AGENT}", "--timeout=100s")


@pytest.fixture(scope="module")
def installed(
    site: RealSite, registry: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ByHelm]:
    """A cluster without gpufence, and the manual's five commands; at the end all is as before."""
    program = HELM.ensure(Assets.from_environment(os.environ), Progress(sys.stderr))
    helm = Helm(program, tmp_path_factory.mktemp("helm"), site.kubeconfig)
    site.cluster.kubectl("delete", "-k", OVERLAY, "--ignore-not-found", "--timeout=100s")
    forget(site.cluster, registry)
    try:
        with site.namespace() as team:
            for number, (command, *arguments) in enumerate(five_commands(team, registry)):
                if command == "helm":
                    helm(*arguments, *(HERE if number == 0 else []))
                    wait_for_programs(site)
                else:
                    site.cluster.kubectl(*arguments)
            yield ByHelm(site, registry, team, site.evict_greedy(team), helm)
    finally:
        helm("uninstall", "gpufence", "--ignore-not-found", "--wait", "--timeout=100s")
        site.install()


def test_five_commands_lead_to_an_eviction(installed: Installed) -> None:
    """A pod that breaks its limit is gone, and its successor is configured with the limit."""
    installed.check_eviction()


def test_the_node_pulls_from_ones_own_registry(installed: Installed) -> None:
    """No image was on the node under its name there: each is fetched, built or carried over."""
    installed.check_pulls()


def test_the_doctor_is_content_in_its_pod(installed: ByHelm) -> None:
    """`helm test` passes, shows what the doctor says, and leaves nothing of it."""
    tested = installed.helm("test", "gpufence", "--logs", "--timeout=100s")

    assert 1 == tested.stdout.count("permissions   you may see everything")
    assert re.search(r"^(all is well|nothing is wrong)", tested.stdout, re.MULTILINE)
    assert [] == [name for name in installed.site.everything() if "doctor" in name]


def test_no_admission_suffers_from_an_upgrade(installed: ByHelm) -> None:
    """While Helm replaces the webhook, it sees every pod."""
    before = {one["metadata"]["uid"] for one in installed.site.pods(SYSTEM[1], WEBHOOK)}
    setting = "--set-string=settings.webhook.GPUFENCE_LOG_LEVEL=debug"
    upgrade = ["upgrade", "gpufence", str(CHART), "--reset-then-reuse-values", setting]
    command = [str(installed.helm.program), *upgrade, "--wait", "--timeout=100s"]
    seen = []
    with subprocess.Popen(
        command,
        env={**os.environ, "KUBECONFIG": str(installed.site.kubeconfig)},
        stdout=subprocess.DEVNULL,
    ) as running:
        while running.poll() is None:
            admitted = installed.site.admitted(pod(installed.team, "any"))
            seen.append(notes(admitted).get(names.INJECTED))
    after = {one["metadata"]["uid"] for one in installed.site.pods(SYSTEM[1], WEBHOOK)}

    assert 0 == running.returncode
    assert set() == before & after
    assert {"yes"} == set(seen)


def test_uninstalling_leaves_nothing(installed: ByHelm) -> None:
    """No object of gpufence or Helm is left; it is installed again for other tests."""
    installed.helm("uninstall", "gpufence", "--wait", "--timeout=100s")
    everything = installed.site.everything()
    named = f"--set=image.registry={installed.registry}/gpufence"
    installed.helm("install", "gpufence", str(CHART), named, *HERE)
    wait_for_programs(installed.site)

    assert [] == sorted(name for name in everything if "gpufence" in name or "helm" in name)
