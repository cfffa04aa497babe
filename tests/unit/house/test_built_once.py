"""What every program needs is built once: stores, followers, writers, threads."""

import ast

from tests.support.sources import ROOT, module_name, product_files, tree_of

THREADS = {
    "agent.loop.worker": "several at once, as many as there are acts",
    "kube.repeating": "the one for all",
    "kubectl_gpufence.verbs.dashboard.server": "serves people on this machine",
    "service.status_server": "serves probes, Prometheus and the plugin",
}
"""Modules of the programs that make a thread by hand, and why."""

STORES = {
    "kube.informers.reflector.Handler",
    "kube.informers.store.Store",
    "simulator.node.pods.Inbox",
}
"""What takes whole collections and their changes: the protocol, the store, the
simulated kubelet's queue."""


def test_every_thread_that_is_made_by_hand_is_listed() -> None:
    """A new one belongs on `Repeating` or `Background`, or says why not."""
    made = {
        module_name(path)
        for path in product_files()
        if not path.is_relative_to(ROOT / "simulator")
        and any(_makes_a_thread(node) for node in ast.walk(tree_of(path)))
    }

    assert THREADS.keys() == made


def test_there_is_one_store() -> None:
    """A class that takes a whole collection and its changes is a store of its own."""
    stores = {
        f"{module_name(path)}.{node.name}"
        for path in product_files()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and {"replace", "apply"} <= _methods_of(node)
    }

    assert stores == STORES


def _methods_of(node: ast.ClassDef) -> set[str]:
    return {each.name for each in node.body if isinstance(each, ast.FunctionDef)}


def _makes_a_thread(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in {"threading.Thread", "Thread"}
