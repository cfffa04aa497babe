"""Where a person types on the cluster, and reads what is printed and shown."""

import json
import subprocess
import sys

from tests.e2e.site import Json, RealSite
from tests.support.browser import Tab
from tests.support.site import surroundings


class Desk:
    """Where somebody types, in one namespace; what is printed is printed here, too."""

    def __init__(self, site: RealSite, namespace: str, tab: Tab) -> None:
        self._site = site
        self._namespace = namespace
        self._tab = tab

    def create(self, made: Json) -> str:
        return self._kubectl("create", "-f", "-", stdin=json.dumps(made))

    def events(self) -> str:
        return self._kubectl("get", "events", "--sort-by=.lastTimestamp")

    def describe(self, *what: str) -> str:
        return self._kubectl("describe", *what)

    def explain(self, what: str) -> str:
        return self.ask("explain", what)

    def why(self, what: str) -> str:
        return self.ask("why", what)

    def ask(self, *words: str) -> str:
        """Run `kubectl gpufence`."""
        where = () if words == ("doctor",) else ("-n", self._namespace)
        done = self._site.plugin(*words, *where, COLUMNS="100")
        return _typed(f"gpufence {' '.join(words)}", done.stdout + done.stderr)

    def page(self) -> str:
        """Open the live page, and read what it says."""
        words = ("dashboard", "--no-open", "-n", self._namespace)
        program = subprocess.Popen(
            (sys.executable, "-m", "kubectl_gpufence", *words),
            env=surroundings({"KUBECONFIG": str(self._site.kubeconfig)}),
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert program.stdout is not None
            self._tab.open(program.stdout.readline().strip())
            self._tab.wait("document.querySelector('#live')?.textContent == 'live'")
            return _typed(f"gpufence {' '.join(words)}", self._tab.text())
        finally:
            program.terminate()
            program.communicate()

    def _kubectl(self, *words: str, stdin: str | None = None) -> str:
        where = ("--namespace", self._namespace)
        done = self._site.cluster.kubectl(*words, *where, stdin=stdin, check=False)
        return _typed(" ".join(words), done.stdout + done.stderr)


def _typed(command: str, printed: str) -> str:
    sys.stdout.write(f"\n$ kubectl {command}\n{printed}")
    return " ".join(printed.split())
