"""TensorFlow takes no more than the share, whichever way its devices come to life."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.python_hook.standins import tensorflow
from tests.contract.python_hook.worlds import SHARES, said, start, write

SHARE = 0.0641
WORLDS = {
    "2.x": tensorflow(),
    "1.15": tensorflow("tensorflow_core"),
    "1.13": tensorflow(context_config=False),
}
BEGIN = """
import json
from {root}.core.protobuf import config_pb2 as pb
from {root}.python.eager import context
from {root}.python.client import session, device_lib
from {root}.python.training import server_lib
def asking(fraction, *limits):
    devices = [pb.VirtualDevices(memory_limit_mb=list(each)) for each in limits]
    return pb.ConfigProto(gpu_options=pb.GPUOptions(
        per_process_gpu_memory_fraction=fraction, allow_growth=True,
        experimental=pb.Experimental(virtual_devices=devices)))
def fraction(config):
    return config and config.gpu_options.per_process_gpu_memory_fraction
def limits(config):
    return [each.memory_limit_mb for each in config.gpu_options.experimental.virtual_devices]
"""


def tell(
    folder: Path, expression: str, version: str = "2.x", environ: dict[str, str] | None = None
) -> Any:
    """Return what an expression is in a fresh interpreter with that TensorFlow."""
    world = write(folder, WORLDS[version])
    begin = BEGIN.replace("{root}", "tensorflow_core" if version == "1.15" else "tensorflow")
    code = f"{begin}\nprint(json.dumps({expression}))"
    return json.loads(said(start("-c", code, path=(world,), environ=environ)))


EXPLICIT = (
    "session.Session(config=asking({}))._config",
    "session.Session('', None, asking({}))._config",
    "session.BaseSession(config=asking({}))._config",
    "device_lib.list_local_devices(asking({}))[0]",
    "device_lib.list_local_devices(session_config=asking({}))[0]",
    "server_lib.Server(None, config=asking({})).server_def.default_session_config",
)
DEFAULT = (
    "session.Session()._config",
    "device_lib.list_local_devices()[0]",
    "server_lib.Server(None).server_def.default_session_config",
)


@pytest.mark.parametrize("version", WORLDS)
def test_a_program_may_ask_for_less_only(tmp_path: Path, version: str) -> None:
    """A config comes down to the share, also where there is none, and stays where it asks less."""
    amounts = f"(0.9, 0.0, 2.0, {SHARE}, 0.02)"
    config = "_config" if version == "1.13" else "config"
    eager = [f"context.Context({asked}).{config}" for asked in ("None", "asking(0.02)")]
    asked = [f"[fraction({made.format('each')}) for each in {amounts}]" for made in EXPLICIT]
    asked += [f"fraction({made})" for made in (*DEFAULT, *eager)]
    told = tell(tmp_path, f"[{', '.join(asked)}]", version)

    assert [[SHARE, SHARE, SHARE, SHARE, 0.02]] * len(EXPLICIT) == told[: len(EXPLICIT)]
    assert [*[SHARE] * len(DEFAULT), SHARE, 0.02] == told[len(EXPLICIT) :]


def test_only_the_fraction_of_a_copy_changes(tmp_path: Path) -> None:
    """Growth and the program's own config stay, and inspection sees functions as written."""
    own = "(lambda own: [session.Session(config=own), fraction(own)][1])(asking(1))"
    growth = "session.Session(config=asking(0.9))._config.gpu_options.allow_growth"
    signature = "str(__import__('inspect').signature(session.BaseSession.__init__))"
    told = tell(tmp_path, f"[{own}, {growth}, {signature}]")

    assert [1, True, "(self, target='', graph=None, config=None)"] == told


def test_virtual_devices_shrink_together(tmp_path: Path) -> None:
    """
    Their limits keep their proportion and end at the share of each card; beside them there is no
    fraction, for TensorFlow would refuse both.
    """
    asked = ("[512]", "[4000, 2000]", "[4000], [100, 100], []")
    made = [f"session.Session(config=asking(0, {each}))._config" for each in asked]
    told = tell(tmp_path, f"[[limits(c), fraction(c)] for c in ({', '.join(made)})]")

    assert [[[512]], [[656, 328]], [[984], [100, 100], [984]]] == [each for each, _ in told]
    assert {0} == {fraction for _, fraction in told}


def test_virtual_devices_stay_on_an_unknown_card(tmp_path: Path) -> None:
    """Where the card's size is unknown the program's limits stay."""
    told = tell(
        tmp_path,
        "limits(session.Session(config=asking(0, [4000]))._config)",
        environ={"GPUFENCE_TF_FRACTION": "0.0641"},
    )

    assert [[4000]] == told


@pytest.mark.parametrize("value", [None, "", "0.0", "1.5", "-0.1", "nan", "abc"])
def test_an_unreadable_share_changes_nothing(tmp_path: Path, value: str | None) -> None:
    """Without a share of its own TensorFlow gets what the program asked for, and no more."""
    environ = {"GPUFENCE_MEMORY_FRACTION": SHARES["GPUFENCE_MEMORY_FRACTION"]}
    environ |= {} if value is None else {"GPUFENCE_TF_FRACTION": value}
    told = tell(
        tmp_path,
        "[fraction(session.Session(config=asking(0.9))._config), device_lib.list_local_devices()]",
        environ=environ,
    )

    assert [0.9, [None]] == told


def test_a_wrong_config_fails_as_ever(tmp_path: Path) -> None:
    """What TensorFlow refuses it still refuses, in its own words."""
    world = write(tmp_path, WORLDS["2.x"])
    code = "from tensorflow.python.client import session; session.Session(config=3)"
    result = start("-c", code, path=(world,))

    assert (
        "TypeError: config must be a tf.ConfigProto, but got <class 'int'>"
        == (result.stderr.splitlines()[-1])
    )


def test_an_older_listing_without_a_config_is_left_alone(tmp_path: Path) -> None:
    """A listing that takes no config, as in 1.4, is called as ever."""
    old = "def list_local_devices():\n    return ['cpu']\n"
    world = write(tmp_path, {**tensorflow(), "tensorflow/python/client/device_lib.py": old})
    code = "from tensorflow.python.client import device_lib as d; print(d.list_local_devices())"

    assert "['cpu']" == said(start("-c", code, path=(world,)))
