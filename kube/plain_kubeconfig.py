"""
Read the kubeconfigs that nearly everybody has, without the Kubernetes client.

Loading that package takes longer than all else that a command does. Whatever is not plain here, or
in doubt, remains its business (kube.kubeconfig), and so does every explanation of what is wrong.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import yaml

from kube.credentials import CommandedToken, Credentials, NoCredentials
from kube.kubeconfig_values import Kubeconfig
from kube.plain_fields import fields, named_entries, only_entry, require, texts
from kube.private_files import private_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_DISPUTED = frozenset("\t?")  # libyaml allows these where PyYAML's own parser refuses them
_LISTS = ("contexts", "clusters", "users")
_TOP = frozenset({*_LISTS, "apiVersion", "kind", "preferences", "current-context"})
_CONTEXT = frozenset({"cluster", "user", "namespace"})
_AUTHORITY = frozenset({"certificate-authority", "certificate-authority-data"})
_CLUSTER = _AUTHORITY | {"server", "insecure-skip-tls-verify", "tls-server-name", "proxy-url"}
_CERTIFICATE = frozenset({"client-certificate", "client-certificate-data"})
_KEY = frozenset({"client-key", "client-key-data"})
_USER = _CERTIFICATE | _KEY | {"token", "tokenFile"}


def read_any(paths: str, context: str | None) -> Kubeconfig:
    """
    Read one context in the cheapest way that does it justice.

    Raises AccessError that names the file, what is missing in it and what could be chosen instead.
    """
    plain = read_plain(paths, context)
    if plain is not None:
        return plain
    from kube.kubeconfig import read_kubeconfig  # noqa: PLC0415 (it costs 20 MiB and 0.2 s)

    return read_kubeconfig(paths, context)


def read_plain(paths: str, context: str | None) -> Kubeconfig | None:
    """
    Read one context, by default the current one, exactly as `read_kubeconfig` would, or not at all.

    None stands for the slightest doubt: several files, exec plugins, unknown or contradictory
    fields, missing files, and whatever else is not plain.
    """
    try:
        return _read(paths, context)
    except Exception:  # noqa: BLE001 (odd YAML raises whatever it likes; the other reader explains)
        return None


def _read(paths: str, context: str | None) -> Kubeconfig:
    path = Path(os.path.expanduser(paths)).absolute()  # noqa: PTH111 (Path expands ./~ as well)
    # A pipe can be read only once, and not by us; what names a folder must not pass for a file.
    require(os.pathsep not in paths and not paths.endswith(("/", "/.")) and path.is_file())
    config = _load(path)
    contexts, clusters, users = (named_entries(config.get(kind)) for kind in _LISTS)
    chosen = only_entry(contexts, context or config["current-context"], "context", _CONTEXT)
    if chosen.get("user") == "":  # kubectl's way to write nobody
        del chosen["user"]
    names = texts(chosen)
    cluster = only_entry(clusters, names["cluster"], "cluster", _CLUSTER)
    unverified = cluster.pop("insecure-skip-tls-verify", False)
    require(isinstance(unverified, bool) and not (unverified and cluster.keys() & _AUTHORITY))
    user = only_entry(users, names["user"], "user", _USER) if "user" in names else {}
    places, logins = texts(cluster), texts(user)
    _require_agreement(places, logins)
    token_file = path.parent / logins["tokenFile"] if "tokenFile" in logins else None
    token = _token(logins, token_file)
    return Kubeconfig(
        server=places["server"].rstrip("/"),
        credentials=_credentials(token, lambda: read_any(paths, context)),
        token_file=token_file,
        headers={},
        ca_file=_file(places, "certificate-authority", path.parent),
        client_file=_file(logins, "client-certificate", path.parent),
        client_key_file=_file(logins, "client-key", path.parent),
        verify=not unverified,
        server_name=places.get("tls-server-name"),
        proxy=places.get("proxy-url"),
        namespace=names.get("namespace", ""),
    )


def _load(path: Path) -> dict[str, object]:
    text = path.read_text(encoding="ascii")  # what other letters mean depends on the locale
    require(not _DISPUTED & set(text))
    config = fields(yaml.load(text, Loader=_LOADER), _TOP)  # noqa: S506 (either loader is safe)
    require(config.get("apiVersion", "v1") == "v1" and config.get("kind", "Config") == "Config")
    require(isinstance(config.setdefault("current-context", ""), str))
    return config


def _require_agreement(cluster: Mapping[str, str], user: Mapping[str, str]) -> None:
    certificates = (cluster.keys() & _AUTHORITY, user.keys() & _CERTIFICATE, user.keys() & _KEY)
    require(all(len(ways) <= 1 for ways in certificates))
    require(len(certificates[1]) == len(certificates[2]))
    require(not ("token" in user and "tokenFile" in user))
    require(not user.get("tokenFile", "").startswith("~"))
    server = cluster["server"]
    require(urlsplit(server).hostname)
    http = server.startswith("http://") and not any(certificates)
    require(http or server.startswith("https://"))


def _token(user: Mapping[str, str], token_file: Path | None) -> str | None:
    if token_file is None:
        return user.get("token")
    path = Path(os.path.normpath(token_file))
    require(path.is_file() and token_file.is_file())
    token = path.read_text(encoding="ascii")
    require(token)
    return token


def _credentials(token: str | None, again: Callable[[], Kubeconfig]) -> Credentials:
    if token is None:
        return NoCredentials()
    first = [lambda: f"Bearer {token}"]
    return CommandedToken(lambda: first.pop() if first else again().credentials.header)


def _file(values: Mapping[str, str], key: str, folder: Path) -> Path | None:
    embedded = values.get(f"{key}-data")
    if embedded is not None:
        return private_file(base64.b64decode(embedded, validate=True))
    if key not in values:
        return None
    path = Path(os.path.normpath(folder / values[key]))
    require(path.is_file())
    return path
