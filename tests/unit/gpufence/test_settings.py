"""Names, and settings: read from the environment, shown, and refused by name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath

import pytest

from gpufence import names
from gpufence.errors import InvalidError, SettingsError
from gpufence.mode import Mode, read_mode
from gpufence.quantity import GIB, MIB
from gpufence.setting_kinds import (
    ADDRESS,
    NAMES,
    Kind,
    Row,
    choice,
    converted,
    parsed,
    read_address,
    read_agents,
    read_url,
    split_items,
)
from gpufence.settings import (
    UnitSettings,
    help_text,
    markdown_table,
    part,
    read_settings,
    rows,
    setting,
    shown_settings,
    unknown_settings,
    with_parts,
)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A part of the program's settings; the last field is none of an operator's business."""

    count: int = field(default=3, metadata=setting("P_COUNT", "how many", least=1, most=10))
    wait_seconds: float = field(
        default=5.0, metadata=setting("P_WAIT", "how long it waits", least=1, most=60)
    )
    floor_bytes: int = field(default=512 * MIB, metadata=setting("P_FLOOR", "least memory"))
    inner: str = "computed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    name: str = field(default="", metadata=setting("P_NAME", "who", unset="required"))
    on: bool = field(default=True, metadata=setting("P_ON", "`true` or `false`"))
    colour: Colour = field(default=Colour.RED, metadata=setting("P_COLOUR", "which"))
    size: str = field(default="s", metadata=setting("P_SIZE", "what", kind=choice(("s", "l"))))
    mode: Mode = field(
        default=Mode.OBSERVE, metadata=setting("P_MODE", "mode", kind=parsed(read_mode))
    )
    listen: tuple[str, int] = field(
        default=("", 80), metadata=setting("P_LISTEN", "where", kind=ADDRESS)
    )
    folder: PurePath | None = field(
        default=None,
        metadata=setting("P_FOLDER", "which folder", kind=converted(PurePath), unset="none"),
    )
    teams: frozenset[str] = field(
        default=frozenset({"b", "a"}), metadata=setting("P_TEAMS", "whose", kind=NAMES)
    )
    each: Mapping[str, str] = field(
        default_factory=lambda: {"X": "x", "Y": "y"},
        metadata=setting("P_EACH_<KEY>", "one for each", kind=Kind(lambda text, _: text)),
    )
    numbers: Numbers = field(default_factory=Numbers, metadata=part("Numbers:"))
    units: UnitSettings = field(default_factory=UnitSettings, metadata=part())


def problem(variable: str, text: str) -> str:
    """Return what is said about one value."""
    with pytest.raises(SettingsError) as caught:
        read_settings(Example, {variable: text})
    (only,) = caught.value.problems
    return only.sentence


def test_unset_and_empty_variables_mean_the_default() -> None:
    """A variable that is absent, empty or blank leaves the default."""
    assert Example() == read_settings(Example, {"P_COUNT": "", "P_WAIT": "  "})


def test_values_are_read_by_their_kind() -> None:
    """Every kind of value has its reader, in every part."""
    read = read_settings(
        Example,
        {
            "P_NAME": " me ",
            "P_COLOUR": "blue",
            "P_SIZE": "l",
            "P_MODE": "cap",
            "P_FOLDER": "/x",
            "P_TEAMS": "c, d,,",
            "P_EACH_Y": "other",
            "P_COUNT": "8",
            "P_WAIT": "2.5",
            "P_FLOOR": "1Gi",
            "GPUFENCE_GPUSHARE_UNIT": "MiB",
        },
    )

    assert ("me", Colour.BLUE, "l", Mode.CAP) == (read.name, read.colour, read.size, read.mode)
    assert PurePath("/x") == read.folder
    assert frozenset({"c", "d"}) == read.teams
    assert {"X": "x", "Y": "other"} == read.each
    assert Numbers(count=8, wait_seconds=2.5, floor_bytes=GIB) == read.numbers
    assert UnitSettings(gpushare_bytes=MIB) == read.units


@pytest.mark.parametrize("row", rows(Example), ids=lambda row: row.variable)
def test_a_default_written_into_its_variable_changes_nothing(row: Row) -> None:
    """What the help shows as a default is read as that default."""
    family = row.family().values() or (row,)
    variables = {each.variable: each.default_text for each in family if not each.unset}

    assert Example() == read_settings(Example, variables)


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("ON", True), ("1", True), ("yes", True), ("off", False), ("0", False)],
)
def test_booleans_have_many_spellings(text: str, *, value: bool) -> None:
    """What people write for yes and no is understood in any case."""
    assert value is read_settings(Example, {"P_ON": text}).on


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8443", ("", 8443)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:443", ("::1", 443)),
        ("host:65535", ("host", 65535)),
    ],
)
def test_addresses_are_host_and_port(text: str, address: tuple[str, int]) -> None:
    """An empty host means every interface; brackets hold an IPv6 address."""
    assert address == read_address(text, "P_LISTEN")


@pytest.mark.parametrize("text", ["8443", "host:", "host:65536", "host:x", "h:" + "0" * 21 + "1"])
def test_a_text_that_is_no_address_is_refused(text: str) -> None:
    """Without a port between 0 and 65535 there is no address."""
    assert problem("P_LISTEN", text).endswith("is not an address; write host:port, such as :80")


@pytest.mark.parametrize("text", ["-1", "1.5", "11", "0", "many", "0" * 20 + "5"])
def test_integers_out_of_place_are_refused(text: str) -> None:
    """Only plain digits within the bounds are a whole number, leading zeros or not."""
    assert f'P_COUNT: "{text}" is out of place; write a whole number from 1 to 10' == problem(
        "P_COUNT", text
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("soon", "is not a number of seconds"),
        ("0.5", "is out of range"),
        ("nan", "is out of range"),
        ("inf", "is out of range"),
    ],
)
def test_seconds_out_of_place_are_refused(text: str, reason: str) -> None:
    """A duration is a number within its bounds."""
    assert f'P_WAIT: "{text}" {reason}; write seconds from 1 to 60, such as 5' == problem(
        "P_WAIT", text
    )


def test_every_mistake_is_reported_at_once() -> None:
    """The person who made four mistakes learns of four, each with its variable."""
    wrong = {"P_COLOUR": "green", "P_ON": "maybe", "P_FLOOR": "lots", "P_MODE": "kill"}
    with pytest.raises(SettingsError) as caught:
        read_settings(Example, wrong)

    assert [
        'P_ON: "maybe" is neither true nor false; write true or false',
        'P_COLOUR: "green" is not a choice; write one of red, blue',
        'P_MODE: "kill" is no mode; write one of observe, cap, evict',
        (
            'P_FLOOR: "lots" is not a Kubernetes quantity; '
            "write a number with an optional suffix, such as 6Gi, 1500Mi or 3"
        ),
    ] == str(caught.value).splitlines()


def test_a_required_variable_is_read_even_if_it_is_unset() -> None:
    """Where a command cannot do without a variable, its reader decides about an empty text."""
    with pytest.raises(SettingsError, match='P_MODE: "" is no mode'):
        read_settings(Example, {}, required=["P_MODE"])


def test_variables_that_set_nothing_are_listed() -> None:
    """A misspelt variable of ours can be warned about; those of others are none of our business."""
    variables = {"P_COUNT": "1", "P_EACH_X": "1", "P_EACH_Z": "1", "P_TYPO": "1", "HOME": "/"}

    assert ("P_EACH_Z", "P_TYPO") == unknown_settings(Example, variables, "P_")


def test_settings_are_shown_for_the_log() -> None:
    """Numbers stay numbers, what has no value is null, the rest is text; parts are nested."""
    shown = shown_settings(Example())

    assert {"count": 3, "wait_seconds": 5.0, "floor_bytes": 512 * MIB} == shown["numbers"]
    assert (":80", "a,b", None, True, {"X": "x", "Y": "y"}) == tuple(
        shown[name] for name in ("listen", "teams", "folder", "on", "each")
    )


def test_the_help_has_a_line_for_each_setting() -> None:
    """Help is made of headings, and lines with text and default, without the page's Markdown."""
    blocks = help_text(Example, "Program:").split("\n\n")

    assert ["Program:", "Numbers:"] == [block.splitlines()[0] for block in blocks]
    assert "  P_NAME                   who (required)" == blocks[0].splitlines()[1]
    assert "  P_ON                     true or false (true)" == blocks[0].splitlines()[2]
    assert "  P_FLOOR  least memory (512Mi)\n" == blocks[1].splitlines(keepends=True)[3]


def test_long_help_is_wrapped_under_itself() -> None:
    """A text longer than a line goes on where it began."""

    @dataclass(frozen=True, kw_only=True)
    class Long:
        text: str = field(default="x", metadata=setting("P_LONG", "word " * 30))

    first, second = help_text(Long).splitlines()

    assert first.startswith("  P_LONG  word")
    assert second.startswith("          word")


def test_a_page_has_a_table_of_one_dataclass() -> None:
    """The page's table has the rows of the dataclass without its parts."""
    assert [
        "| variable | default | meaning |",
        "|---|---|---|",
        "| `P_COUNT` | `3` | how many |",
        "| `P_WAIT` | `5` | how long it waits |",
        "| `P_FLOOR` | `512Mi` | least memory |",
    ] == markdown_table(Numbers).splitlines()
    assert "| `P_NAME` | required | who |" in markdown_table(Example)


def test_settings_may_have_further_parts() -> None:
    """Those of what is added to a program are read, shown and explained as its own are."""
    whole = with_parts(Example, [("more", "More", Bounds)])
    read = read_settings(whole, {"P_NAME": "a", "P_LOWEST": "3"})

    assert "\nMore\n  P_LOWEST" in help_text(whole)
    assert "a" == read.name
    assert {"lowest": 3} == shown_settings(read)["more"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    lowest: int = field(default=1, metadata=setting("P_LOWEST", "the lowest"))


LABEL = re.compile(
    r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)


def constants() -> dict[str, object]:
    return {key: value for key, value in vars(names).items() if key.isupper()}


def test_no_name_is_spelled_twice() -> None:
    """One meaning, one constant."""
    texts = [value for value in constants().values() if isinstance(value, str)]
    repeated = {text for text in texts if texts.count(text) > 1}

    assert set() == repeated


def test_keys_are_what_kubernetes_accepts() -> None:
    """
    Every key that users or gpufence write is a valid name with one prefix, none is written by both,
    and the API server, which calls webhooks by name, comes to ours before KAI's.
    """
    keys = (*names.USER_KEYS, *names.WRITTEN_KEYS, names.CARDS, names.MAX_MEMORY, names.MODE)

    assert [] == [key for key in keys if not LABEL.fullmatch(key)]
    assert [] == [key for key in keys if not key.startswith(names.PREFIX)]
    assert set() == set(names.USER_KEYS) & set(names.WRITTEN_KEYS)
    assert names.WEBHOOK_CONFIGURATION < "mutating-kai-admission"


def test_event_reasons_are_one_camel_case_word() -> None:
    """An event's reason is what people filter by."""
    reasons = [
        value
        for value in constants().values()
        if isinstance(value, str) and value.startswith(("GPUMemory", "NVML"))
    ]

    assert 20 == len(reasons)
    assert [] == [reason for reason in reasons if not re.fullmatch(r"[A-Z][A-Za-z]+", reason)]


def test_agents_by_node() -> None:
    """
    Each item names a node once and where its agent is, also by IPv6 or behind a path, with blanks
    around it or a slash behind it.
    """
    items = ["a=http://10.0.0.7:8080/", " b=https://a.example.com/agent", "c=http://[fd00::7]:8080"]
    expected = {
        "a": "http://10.0.0.7:8080",
        "b": "https://a.example.com/agent",
        "c": "http://[fd00::7]:8080",
    }

    assert expected == read_agents(items, "--agents")
    assert ("a", "b") == split_items(" a, b,,")
    with pytest.raises(InvalidError, match='--agents: "b" is named twice; name each node once'):
        read_agents(["b=http://10.0.0.7:8080", "b=http://10.0.0.8:8080"], "--agents")
    with pytest.raises(InvalidError, match="is no address"):
        read_url("https://10.0.0.7", "GPUFENCE_AGENTS", {"http"})


@pytest.mark.parametrize(
    "text",
    [
        *("", "gpu-1", "=http://a:1", "gpu-1=a:8080", "gpu-1=http://[", "a="),
        *("gpu 1=http://a:1", "GPU=http://a:1", "a=http://a:99999", "a=http://a:http"),
        *("a=http://a:1,b=http://b:1", "a=http://a b:1", "a=http://a\n:1", "a=http://a:1/\x1b[31m"),
        *("a=http://a:1?", "a=http://a:1/#part", "a=http://me:secret@a:1"),
    ],
)
def test_an_address_that_cannot_be_read_is_named(text: str) -> None:
    """The error says where it stands and what one looks like."""
    with pytest.raises(InvalidError, match=r"--agents.*http://10"):
        read_agents([text], "--agents")


def test_a_secret_in_an_address_is_not_repeated() -> None:
    """What somebody wrote before an @ may be a password, and errors are logged."""
    with pytest.raises(InvalidError, match=r'"http://\.\.\.@a:1" is no address') as caught:
        read_url("http://me:secret@a:1", "--controller")

    assert "secret" not in str(caught.value)
