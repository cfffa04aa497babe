"""
A program's settings as a table: a field of a dataclass carries its variable, its text and its
bounds, and from this one row come the reading, the text of `--help` and the page in docs/.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Pace:
        hold_seconds: float = field(
            default=30.0, metadata=setting("GPUFENCE_HOLD_SECONDS", "time over the limit", most=600)
        )

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Program:
        pace: Pace = field(default_factory=Pace, metadata=part("How long it waits"))

`read_settings(Program, environ)` reads all parts from one mapping and reports every mistake at
once, before the program opens its first socket. A variable that is unset or empty leaves the
default. Fields without a row keep their default: they are for tests and for what is computed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, make_dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gpufence import names
from gpufence.dialects.spec import Units
from gpufence.errors import InvalidError, Problem, SettingsError
from gpufence.quantity import GIB
from gpufence.setting_kinds import PAGE, UNIT, Kind, Row, kind_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

S = TypeVar("S")
_ROW: Final = "gpufence.setting"
_PART: Final = "gpufence.part"
_DAY_SECONDS = 86_400.0
_HELP_COLUMNS = 100


def setting(
    variable: str,
    text: str,
    *,
    kind: Kind | None = None,
    least: float = 0.0,
    most: float = _DAY_SECONDS,
    unset: str = "",
) -> dict[str, object]:
    """
    Return the metadata of a field that a variable sets; Markdown in `text` is for the page alone.

    Without `kind` the default says how to read: true or false, a member of a StrEnum, a quantity
    where the field's name ends in `_bytes`, a whole number, seconds, or text. `least` and `most`
    bound numbers.
    """
    return {_ROW: (variable, text, kind, least, most, unset)}


HELP_URL: Final = setting(
    names.HELP_URL,
    "where users find docs/my-pod.md; Events and refusals end with a link to its parts `#refused`, "
    "`#capped`, `#evicted` and `#released`",
    kind=PAGE,
    unset="no link",
)
"""What agent, webhook and controller have in common."""


def part(title: str = "") -> dict[str, object]:
    """
    Return the metadata of a field that is a settings dataclass itself; `title` heads its rows.
    """
    return {_PART: title}


def with_parts(settings: type[S], parts: Iterable[tuple[str, str, type]]) -> type[S]:
    """Return a settings dataclass that has further parts: the name of each, its title, its type."""
    more = [
        (name, each, field(default_factory=each, metadata=part(title)))
        for name, title, each in parts
    ]
    return make_dataclass(
        settings.__name__, more, bases=(settings,), frozen=True, slots=True, kw_only=True
    )


def rows(settings: type) -> tuple[Row, ...]:
    """Return the rows of a settings dataclass, its parts included."""
    return tuple(row for _, section in sections(settings) for row in section)


def sections(settings: type, title: str = "") -> tuple[tuple[str, tuple[Row, ...]], ...]:
    """Return titles with their rows; the rows of a part without title go with those before it."""
    found: dict[str, list[Row]] = {title: []}
    for item in fields(settings):
        if _ROW in item.metadata:
            found[title].append(_row(item))
        elif _PART in item.metadata:
            inner = item.metadata[_PART] or title
            for heading, section in sections(type(_default(item)), inner):
                found.setdefault(heading, []).extend(section)
    return tuple((heading, tuple(section)) for heading, section in found.items() if section)


def read_settings(
    settings: type[S], variables: Mapping[str, str], *, required: Collection[str] = ()
) -> S:
    """
    Read every setting; a `required` variable is read even if it is unset or empty.

    Raises:
        SettingsError: with everything that is wrong.

    """
    problems: list[Problem] = []
    read = _read(settings, variables, required, problems)
    if problems:
        raise SettingsError(problems)
    return read


def unknown_settings(
    settings: type, variables: Mapping[str, str], prefix: str = names.SETTING_PREFIX
) -> tuple[str, ...]:
    """
    Return the variables of ours that set nothing: misspelt, or meant for another program.

    They are worth a warning but no refusal: Kubernetes itself puts GPUFENCE_WEBHOOK_PORT and
    its like into pods beside a Service of that name.
    """
    known = {variable for row in rows(settings) for variable in row.variables}
    return tuple(sorted(name for name in variables.keys() - known if name.startswith(prefix)))


def shown_settings(value: Any) -> dict[str, object]:  # noqa: ANN401 - any settings dataclass
    """Return all settings for the log: numbers as they are, the rest as the variables take them."""
    shown: dict[str, object] = {}
    for item in fields(value):
        each = getattr(value, item.name)
        if _PART in item.metadata:
            shown[item.name] = shown_settings(each)
        elif _ROW in item.metadata:
            kind = _row(item).kind
            plain = each is None or isinstance(each, (bool, int, float, Mapping))
            shown[item.name] = each if plain else kind.write(each)
    return shown


def help_text(settings: type, title: str = "") -> str:
    """Return what `--help` prints about settings, each with its default in brackets."""
    blocks = []
    for heading, section in sections(settings, title):
        lines = [heading] if heading else []
        width = max(len(row.variable) for row in section) + 2
        for row in section:
            text = f"{row.text} ({row.default_text})".replace("`", "")
            indent = " " * (width + 2)
            head = f"  {row.variable:{width}}"
            lines += textwrap.wrap(
                text,
                _HELP_COLUMNS,
                initial_indent=head,
                subsequent_indent=indent,
                break_on_hyphens=False,
            )
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def markdown_table(settings: type) -> str:
    """Return the rows of one dataclass, without its parts, as a table for a page in docs/."""
    lines = ["| variable | default | meaning |", "|---|---|---|"]
    for row in (_row(item) for item in fields(settings) if _ROW in item.metadata):
        default = row.unset or f"`{row.default_text}`"
        lines.append(f"| `{row.variable}` | {default} | {row.text} |")
    return "\n".join(lines)


def _read(
    settings: type[S],
    variables: Mapping[str, str],
    required: Collection[str],
    problems: list[Problem],
) -> S:
    values: dict[str, object] = {}
    for item in fields(settings):  # type: ignore[arg-type]  # a settings dataclass
        if _PART in item.metadata:
            values[item.name] = _read(type(_default(item)), variables, required, problems)
        elif _ROW in item.metadata:
            row = _row(item)
            family = row.family()
            values[item.name] = (
                {key: _value(one, variables, required, problems) for key, one in family.items()}
                if family
                else _value(row, variables, required, problems)
            )
    return settings(**values)


def _value(
    row: Row, variables: Mapping[str, str], required: Collection[str], problems: list[Problem]
) -> object:
    text = variables.get(row.variable, "").strip()
    if not text and row.variable not in required:
        return row.default
    try:
        return row.kind.read(text, row)
    except InvalidError as error:
        problems.append(error.problem)
        return row.default


def _row(item: Field[Any]) -> Row:
    variable, text, kind, least, most, unset = item.metadata[_ROW]
    default = _default(item)
    return Row(
        variable=variable,
        text=text,
        kind=kind or kind_of(item.name, default),
        least=least,
        most=most,
        unset=unset,
        default=default,
    )


def _default(item: Field[Any]) -> Any:  # noqa: ANN401 - the field's own type
    return item.default if item.default_factory is MISSING else item.default_factory()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSettings:
    """
    What two schedulers' numbers mean where no Node tells; the webhook and the agent must agree.
    """

    gpushare_bytes: int = field(
        default=GIB,
        metadata=setting(
            names.GPUSHARE_UNIT,
            "unit of aliyun.com/gpu-mem where no Node states it: `GiB` or `MiB`",
            kind=UNIT,
        ),
    )
    volcano_factor: int = field(
        default=1,
        metadata=setting(
            names.VOLCANO_FACTOR,
            "`--gpu-memory-factor` of Volcano's device plugin",
            least=1,
            most=2**20,
        ),
    )

    @property
    def default(self) -> Units:
        """Return what the numbers on pods mean where no Node tells."""
        return Units(gpushare_bytes=self.gpushare_bytes, volcano_factor=self.volcano_factor)
