"""Nodes that share what they have in common."""

from gpufence.dialects import Units
from gpufence.nodes import GpuNode, read_node
from webhook.caches import Labels, compact


def node(name: str, **labels: str) -> GpuNode:
    said = {"nvidia.com/gpu.memory": "15360", "kubernetes.io/hostname": name, **labels}
    found = read_node(
        {
            "metadata": {"name": name, "labels": said},
            "status": {"allocatable": {"nvidia.com/gpu": "1"}},
        },
        Units(),
    )
    assert found is not None
    return found


def test_a_compact_node_is_equal_to_the_one_it_was_made_of() -> None:
    """Nothing is lost and nothing is added."""
    assert node("a", zone="b") == compact(node("a", zone="b"))


def test_labels_read_like_a_dict() -> None:
    """Keys, values, absence and length are those of the dict."""
    labels = Labels({"b": "2", "a": "1"})

    assert {"a": "1", "b": "2"} == dict(labels)
    assert ("2", None, 2) == (labels["b"], labels.get("c"), len(labels))
    assert "Labels({'a': '1', 'b': '2'})" == repr(labels)


def test_labels_differ_by_keys_and_by_values() -> None:
    """Equality looks at both, also beside a dict."""
    labels = Labels({"a": "1"})

    assert labels == Labels({"a": "1"})
    assert labels == {"a": "1"}
    assert labels != Labels({"b": "1"})
    assert labels != Labels({"a": "2"})
    assert 1 == len({labels, Labels({"a": "1"})})


def test_equal_parts_are_held_once() -> None:
    """Cards and resources of two nodes of a kind are the same objects."""
    one, other = compact(node("a")), compact(node("b"))

    assert one.cards is other.cards
    assert one.resources is other.resources
