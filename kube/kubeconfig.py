"""
Read a kubeconfig through the Kubernetes client: its exec plugins and OIDC logins are its business.

The sole importer of `kubernetes`, and itself imported only where there is a kubeconfig. Of that
package it loads the modules that read kubeconfigs and none of the others, which would take twice
as long as all else that a program at a desk loads.

That package writes embedded keys into temporary files and removes them when a program ends well.
Here they are removed as soon as they have been read, since programs are killed, too.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import yaml

from kube.access import Access, choose_proxy
from kube.credentials import (
    Certificates,
    CommandedToken,
    Credentials,
    NoCredentials,
    TokenFile,
    Trust,
)
from kube.errors import AccessError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kubernetes.client import Configuration

    from kube.access import ClientSettings
    from kube.replies import JsonObject


def _reader() -> ModuleType:
    """Import what reads kubeconfigs; what only a renewal by OIDC calls is loaded by that."""
    if "kubernetes" in sys.modules:
        return import_module("kubernetes.config.kube_config")
    for package in ("kubernetes", "kubernetes.config"):
        if (spec := find_spec(package)) is not None:
            sys.modules[package] = module_from_spec(spec)  # and what it imports is left alone
    client = import_module("kubernetes.client")
    vars(client)["ApiClient"] = _later("kubernetes.client.api_client", "ApiClient")
    session, oauth = ModuleType("requests_oauthlib"), ModuleType("oauthlib")
    vars(session)["OAuth2Session"] = _later("requests_oauthlib", "OAuth2Session")
    vars(oauth)["__getattr__"] = lambda name: import_module(f"oauthlib.{name}")
    every = (session, oauth, ModuleType("oauthlib.oauth2"))
    stand_ins = {each.__name__: each for each in every if each.__name__ not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        return import_module("kubernetes.config.kube_config")
    finally:
        for name in stand_ins:
            del sys.modules[name]


def _later(module: str, name: str) -> Callable[..., object]:
    """Make what stands for a class until it is called."""

    def called(*args: object, **options: object) -> object:
        return getattr(import_module(module), name)(*args, **options)

    return called


_CLIENT: Any = _reader()  # without types; the values taken from it are checked at once, below
_FILES = threading.RLock()  # held while there are files of embedded keys
_UNSUPPORTED_USER_FIELDS = ("as-groups", "as-uid", "as-user-extra")
_RENEWING_AUTH_PROVIDERS = frozenset({"gcp", "oidc"})


def access_by_kubeconfig(settings: ClientSettings, paths: str) -> Access:
    """
    Take one context, by default the current one, of a file or of several joined by colons.

    Raises AccessError that names the file, what is missing in it and what could be chosen instead.
    """
    with _temporary_files():  # of embedded certificates, which the trust has read afterwards
        loaded = _load(paths, settings.context)
        server = str(loaded.configuration.host)
        user = loaded.user.get("as")
        return Access(
            server=server,
            credentials=_credentials(settings, paths, loaded),
            trust=_trust(settings, loaded) if server.startswith("https://") else None,
            server_name=loaded.configuration.tls_server_name,
            proxy=loaded.cluster.get("proxy-url") or choose_proxy(server, settings.proxies),
            headers={"Impersonate-User": str(user)} if user else {},
            namespace=loaded.namespace,
        )


@contextmanager
def _temporary_files() -> Iterator[None]:
    with _FILES:
        try:
            yield
        finally:
            _CLIENT._cleanup_temp_files()  # noqa: SLF001 (its own way, at a better time)


@dataclass(frozen=True, slots=True)
class _Loaded:
    configuration: Configuration
    cluster: JsonObject
    user: JsonObject
    user_folder: Path
    namespace: str

    def authorization(self) -> str | None:
        """Give the current header; the client's hook renews it here once it has expired."""
        return self.configuration.get_api_key_with_prefix("BearerToken", alias="authorization")


def _load(paths: str, context: str | None) -> _Loaded:
    # Texts of the client's exceptions may quote a whole user entry, token included: they are
    # neither shown nor chained, but for the harmless part in front.
    try:
        return _load_unguarded(paths, context)
    except AccessError:
        raise
    except OSError as error:
        problem = f"{error.strerror or 'cannot be read'}: {error.filename or paths}"
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        problem = f"line {line}: {error.problem or 'broken YAML'}"
    except _CLIENT.ConfigException as error:
        problem = _harmless(str(error))
    except Exception as error:  # noqa: BLE001 (odd YAML makes the client raise whatever it likes)
        problem = f"it has not the form of a kubeconfig ({type(error).__name__})"
    raise AccessError(
        f"kubeconfig {paths} cannot be used: {problem}; `kubectl config view` shows it"
    )


def _harmless(text: str) -> str:
    if "Expected all values" in text:
        return "an entry of its clusters, contexts or users has no name"
    return text.partition(" in ")[0].partition("{")[0].strip()


def _load_unguarded(paths: str, context: str | None) -> _Loaded:
    merger = _CLIENT.KubeConfigMerger(paths)
    if merger.config is None:
        raise AccessError(
            f"kubeconfig {paths} does not exist; name an existing file in KUBECONFIG, "
            "or copy the cluster's kubeconfig there"
        )
    name = context or _current_context(merger.config_files)
    chosen = _entry(merger.config, "contexts", name, paths)["context"].value
    cluster = _entry(merger.config, "clusters", chosen.get("cluster") or "", paths)["cluster"].value
    if not cluster.get("server"):
        raise AccessError(f"kubeconfig {paths}: cluster {chosen['cluster']!r} has no server")
    user, user_folder = _user(merger.config, chosen.get("user"), paths)
    loader = _CLIENT.KubeConfigLoader(
        merger.config, active_context=name, config_persister=merger.save_changes
    )
    loader._config_base_path = None  # noqa: SLF001 (its own factory does so: paths are the file's)
    configuration = _CLIENT.Configuration()
    loader.load_and_set(configuration)
    namespace = str(chosen.get("namespace") or "")
    return _Loaded(configuration, cluster, user, user_folder, namespace)


def _current_context(files: dict[str, JsonObject]) -> str:
    # The first file wins, as for kubectl; the Python client would take the last.
    return next((str(f["current-context"]) for f in files.values() if f.get("current-context")), "")


def _entry(config: Any, kind: str, name: str, paths: str) -> Any:  # noqa: ANN401 (the client's own untyped nodes)
    entry = config[kind].get_with_name(name, safe=True)
    if entry is not None:
        return entry
    names = ", ".join(sorted(str(item["name"]) for item in config[kind].value)) or "none"
    wanted = f"has no {kind.removesuffix('s')} {name!r}" if name else "has no current-context"
    raise AccessError(f"kubeconfig {paths} {wanted}; {kind} in it: {names}")


def _user(config: Any, name: str | None, paths: str) -> tuple[JsonObject, Path]:  # noqa: ANN401 (as above)
    if not name:
        return {}, Path()
    entry = _entry(config, "users", name, paths)
    user: JsonObject = entry.value.get("user") or {}
    unsupported = [key for key in _UNSUPPORTED_USER_FIELDS if user.get(key)]
    if unsupported:
        raise AccessError(
            f"kubeconfig {paths}: user {name!r} sets {unsupported[0]}, which gpufence does not "
            "pass on; use a context without it (`as` alone is honoured)"
        )
    provider = (user.get("auth-provider") or {}).get("name")
    if provider and provider not in _RENEWING_AUTH_PROVIDERS:
        raise AccessError(
            f"kubeconfig {paths}: user {name!r} relies on auth-provider {provider!r}, which "
            "Kubernetes removed; use an exec plugin instead"
        )
    return user, Path(entry.path).absolute().parent


def _trust(settings: ClientSettings, loaded: _Loaded) -> Trust:
    configuration = loaded.configuration
    certificates = Certificates(
        ca_file=_path(configuration.ssl_ca_cert),
        client_file=_path(configuration.cert_file),
        client_key_file=_path(configuration.key_file),
        verify=bool(configuration.verify_ssl),
        strict=settings.strict_certificates,
    )
    return Trust(certificates)


def _credentials(settings: ClientSettings, paths: str, loaded: _Loaded) -> Credentials:
    authorization = loaded.authorization()
    if authorization is None:
        _require_certificate(paths, loaded)
    if named := loaded.user.get("tokenFile"):
        file = loaded.user_folder / Path(named).expanduser()
        return TokenFile(file, settings.token_period_seconds)
    if authorization is None:
        return NoCredentials()
    first = [loaded]

    def load() -> Callable[[], str | None]:
        return partial(_renewed, first.pop() if first else _anew(paths, settings.context))

    return CommandedToken(load)


def _anew(paths: str, context: str | None) -> _Loaded:
    with _temporary_files():
        return _load(paths, context)


def _renewed(loaded: _Loaded) -> str | None:
    with _temporary_files():  # an exec plugin may answer with a certificate beside its token
        return loaded.authorization()


def _require_certificate(paths: str, loaded: _Loaded) -> None:
    command = (loaded.user.get("exec") or {}).get("command")
    if command and loaded.configuration.cert_file is None:
        raise AccessError(
            f"kubeconfig {paths}: exec plugin {command!r} gave no credentials (its error is logged "
            "above); run it by hand, or log in again"
        )


def _path(name: str | None) -> Path | None:
    return Path(name) if name else None
