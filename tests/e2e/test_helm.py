"""From nothing to evictions with Helm, as the manual types it, and back to nothing."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from gpufence import names
from simulator.controlplane import Assets
from simulator.progress import Progress
from simulator.published import HELM
from tests.e2e.site import OVERLAY, QUICK, SYSTEM, RealSite, deployment, notes, pod
from tests.support.programs import CHART, FROM, Helm
from tests.support.site import AGENT, WEBHOOK
from tools import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
# Beside what the manual says: the cards of this cluster, and an agent in a hurry.
HERE = [
    FROM,
    "--set=simulated=true",
    *(f"--set-string=settings.agent.{setting}" for setting in QUICK),
]


@dataclass(frozen=True)
class Installed:
    """A cluster into which Helm has put gpufence by five commands, and a fenced team."""

    site: RealSite
    helm: Helm
    team: str
    successor: str


def five_commands(team: str) -> list[list[str]]:
    section = INSTALL.partition("\n## With Helm\n")[2]
    found = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert found is not None
    lines = found.group(1).replace("TEAM", team).replace("deploy/chart", str(CHART)).splitlines()
    return [shlex.split(line) for line in lines]


def wait_for_programs(site: RealSite) -> None:
    site.system("wait", "job", "--all", "--for=condition=complete", "--timeout=100s")
    site.system("rollout", "status", f"deployment/{WEBHOOK}", "--timeout=100s")
    site.system("rollout", "status", f"daemonset/{AGENT}", "--timeout=100s")


@pytest.fixture(scope="module")
def installed(site: RealSite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """A cluster without gpufence, and the manual's five commands; at the end all is as before."""
    program = HELM.ensure(Assets.from_environment(os.environ), Progress(sys.stderr))
    helm = Helm(program, tmp_path_factory.mktemp("helm"), site.kubeconfig)
    site.cluster.kubectl("delete", "-k", OVERLAY, "--ignore-not-found", "--timeout=100s")
    try:
        with site.namespace() as team:
            for number, (command, *arguments) in enumerate(five_commands(team)):
                if command == "helm":
                    helm(*arguments, *(HERE if number == 0 else []))
                    wait_for_programs(site)
                else:
                    site.cluster.kubectl(*arguments)
            site.apply(deployment(team, "greedy", "hold 5Gi"))
            site.until(lambda: bool(site.events(team, names.EVICTED)), "somebody was evicted")
            yield Installed(site, helm, team, site.pod_of(team, "greedy")["metadata"]["name"])
    finally:
        helm("uninstall", "gpufence", "--ignore-not-found", "--wait", "--timeout=100s")
        site.install()


def test_five_commands_lead_to_an_eviction(installed: Installed) -> None:
    """Who breaks his limit is gone, and his successor is told it."""
    (event, *_) = installed.site.events(installed.team, names.EVICTED)
    successor = installed.site.pods(installed.team, "greedy", running=False)[0]

    assert "3072 MiB" in event["message"]
    assert event["involvedObject"]["name"] != successor["metadata"]["name"]
    assert "yes" == notes(successor)[names.INJECTED]


def test_the_doctor_is_content_in_its_pod(installed: Installed) -> None:
    """`helm test` passes, shows what the doctor says, and leaves nothing of it."""
    tested = installed.helm("test", "gpufence", "--logs", "--timeout=100s")

    assert 1 == tested.stdout.count("permissions   you may see everything")
    assert re.search(r"^(all is well|nothing is wrong)", tested.stdout, re.MULTILINE)
    assert [] == [name for name in installed.site.everything() if "doctor" in name]


def test_no_admission_suffers_from_an_upgrade(installed: Installed) -> None:
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


def test_uninstalling_leaves_nothing(installed: Installed) -> None:
    """No object of gpufence or Helm is left; it is installed again for other tests."""
    installed.helm("uninstall", "gpufence", "--wait", "--timeout=100s")
    everything = installed.site.everything()
    installed.helm("install", "gpufence", str(CHART), *HERE)
    wait_for_programs(installed.site)

    assert [] == sorted(name for name in everything if "gpufence" in name or "helm" in name)
