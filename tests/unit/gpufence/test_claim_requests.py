"""What claims ask for before they are allocated: of GPUs, and of nothing else."""

from typing import Any

import pytest

from gpufence.claim_requests import Asked, asked, class_key, classes_asked
from gpufence.dialects.spec import UNKNOWN_AMOUNT, Amount
from gpufence.errors import GpufenceError
from gpufence.quantity import GIB
from tests.support import claims

OURS = "device.driver == 'gpu.nvidia.com'"
OTHERS = "device.driver == 'store.example.com'"
Json = dict[str, Any]


def selecting(*expressions: str) -> Json:
    """Describe what a class, or a request, says of its devices."""
    return {"selectors": [{"cel": {"expression": each}} for each in expressions]}


def of_class(memory: str = "", **fields: Any) -> Json:
    made = claims.request(memory, **fields)
    made["exactly"]["deviceClassName"] = "shared"
    return made


def found(request_of: Json, told: Any) -> list[Asked]:
    spec = claims.claim("c", request_of)["spec"]
    return list(asked(spec, {class_key("shared"): told} if told is not None else {}))


@pytest.mark.parametrize("told", [{"spec": selecting("true", OURS)}, None])
def test_memory_of_a_class_that_names_the_gpu_driver_counts(told: Any) -> None:
    """So does that of one for which nobody has asked, as at an agent."""
    assert [Asked("gpu", Amount(2 * GIB))] == found(of_class("2Gi"), told)


@pytest.mark.parametrize("memory", ["2Gi", ""])
@pytest.mark.parametrize("told", [{"spec": selecting(OTHERS)}, {"spec": {}}, {}])
def test_memory_of_another_drivers_devices_is_none_of_ours(memory: str, told: Json) -> None:
    """Any driver may call a capacity so."""
    assert [] == found(of_class(memory), told)


def test_a_request_may_name_the_driver_itself() -> None:
    """Where its class is about any device."""
    asking = of_class("2Gi", **selecting(OURS))

    assert [Asked("gpu", Amount(2 * GIB))] == found(asking, {"spec": {}})


def test_a_gpu_without_an_amount_is_unknown() -> None:
    """What a class of one's own gives is not always what the driver's policy gives by default."""
    assert [Asked("gpu", UNKNOWN_AMOUNT)] == found(of_class(), {"spec": selecting(OURS)})


def test_a_class_that_cannot_be_read_leaves_memory_in_doubt() -> None:
    """A limit would be a guess; who asks for no memory there may as well ask for no GPU."""
    with pytest.raises(GpufenceError, match="memory of device class shared, which does not exist"):
        found(of_class("2Gi"), "does not exist")

    assert [] == found(of_class(), "does not exist")


def test_only_classes_of_other_names_have_to_be_asked_for() -> None:
    """Each once; those of the driver's own manifests are known."""
    either = {"name": "any", "firstAvailable": [of_class()["exactly"], claims.request()["exactly"]]}
    item = claims.claim("c", claims.request("1Gi"), of_class("1Gi"), either, {"name": "odd"})

    assert ["shared"] == classes_asked([item, claims.template("t", of_class())])
    assert ["shared"] == classes_asked([claims.template("t", of_class())])


def test_where_nothing_has_to_be_told_no_class_is_asked_for() -> None:
    """An allocation names the driver, and what cannot be read names nothing."""
    item = claims.allocated(claims.claim("c", of_class("1Gi")), claims.result(memory="1Gi"))

    assert [] == classes_asked([item, "does not exist", {"spec": "nothing"}])
