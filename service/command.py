"""The command lines of programs: what they are called, their settings in --help, exit codes."""

from __future__ import annotations

import sys
from argparse import RawDescriptionHelpFormatter
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from gpufence.arguments import Parser
from gpufence.errors import GpufenceError
from gpufence.settings import help_text

if TYPE_CHECKING:
    from collections.abc import Callable

WRONG: Final = 2
"""The exit code for a call, settings or a cluster with which nothing can be begun."""
_ABOUT_SETTINGS: Final = (
    "Settings are environment variables; the default of each stands in parentheses."
)


def command_parser(
    name: str, settings: type, about: str = "", title: str = ""
) -> tuple[Parser, dict[str, Any]]:
    """Make a parser whose --help lists the settings, and what its main command has of that."""
    shown: dict[str, Any] = {
        "epilog": f"{_ABOUT_SETTINGS}\n\n{help_text(settings, title)}",
        "formatter_class": RawDescriptionHelpFormatter,
    }
    return Parser(name, description=about or None, **shown), shown


def version() -> str:
    """Return the installed version; a source tree that nobody installed has none."""
    try:
        return metadata.version("gpufence")
    except metadata.PackageNotFoundError:
        return "unknown"


def exit_code(name: str, command: Callable[[], int]) -> int:
    """Run a command; what cannot be done is said in one line."""
    try:
        return command()
    except GpufenceError as error:
        said = str(error)
    except ModuleNotFoundError as error:
        extra = name.removeprefix("gpufence-")
        said = f"{error.name} is not installed: pip install 'gpufence[{extra}]'"
    print(f"{name}: {said}", file=sys.stderr)  # noqa: T201 - a command line says what is wrong
    return WRONG
