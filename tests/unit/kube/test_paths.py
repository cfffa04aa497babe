"""Names become parts of paths, and never more than that."""

import pytest

from kube import core, group


def test_paths_of_both_kinds_of_groups() -> None:
    """The core group and the named ones have their own roots."""
    assert "/api/v1/namespaces/team-a/pods/p/eviction" == core(
        "namespaces", "team-a", "pods", "p", "eviction"
    )
    assert "/apis/apps/v1/deployments" == group("apps/v1", "deployments")


def test_odd_characters_are_quoted() -> None:
    """A port of a proxied pod stays readable; a question mark starts no query."""
    assert "/api/v1/pods/p:8080/a%3Fb%20%C3%BC" == core("pods", "p:8080", "a?b ü")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
def test_names_that_would_change_the_path_are_refused(name: str) -> None:
    """No name leads out of its place."""
    with pytest.raises(ValueError, match="cannot be a name in a Kubernetes path"):
        core("namespaces", name)
