"""One pod with a forged plan, on a real API server: every command of the plugin goes on."""

import pytest

from gpufence import names
from tests.integration.plugin.site import PluginSite
from tests.support.plugin import raw_pod

CONTAINER = '{"limit":"3Gi","processes":%s,"headroom":"factor","cap":"2Gi","settings":[]}'
PLAN = '{"v":1,"mode":"cap","dialect":"gpushare","limit":"3Gi","containers":{"trainer":%s}}'
PLANS = {
    "digits": PLAN % (CONTAINER % ("9" * 4299)),
    "deep": PLAN % ("[" * 900 + "]" * 900),
    "no-number": PLAN % CONTAINER % "NaN",
}


@pytest.fixture(scope="module", autouse=True)
def bad(site: PluginSite) -> None:
    """Make a pod for each way to trip a reader up."""
    for name, plan in PLANS.items():
        made = raw_pod(name=f"bad-{name}", mode=None)
        made["metadata"]["annotations"] = {names.PLAN: plan, names.INJECTED: "yes"}
        site.create(made)


@pytest.mark.parametrize(
    "arguments",
    [
        ("top", "-A"),
        ("top", "-A", "-o", "json"),
        ("top", "nodes"),
        ("top", "cards"),
        ("doctor",),
        *(("explain", f"bad-{name}") for name in PLANS),
    ],
)
def test_no_command_ends_in_a_traceback(site: PluginSite, arguments: tuple[str, ...]) -> None:
    """What is wrong with a pod is a line of the answer at most."""
    where = ("-n", site.team) if arguments[0] == "explain" else ()
    done = site.run(*arguments, *where)

    assert "Traceback" not in done.stderr
    assert done.stdout


def test_the_others_are_shown_as_ever(site: PluginSite) -> None:
    """Each bad pod has its one line, and the good one its own."""
    lines = site.run("top", "-A").stdout.splitlines()
    counts = [sum(f"bad-{name}" in line for line in lines) for name in PLANS]

    assert [1] * len(PLANS) == counts
    assert any("trainer-0" in line and "3500" in line for line in lines)
