"""
What a control plane is made of: its programs and their command lines.

Each follows what a cluster would run, less what one machine and a short life make pointless.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"
ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KUBECTL = "kubectl"
FRONT_PROXY = "front-proxy"

# The first address of the range is the API server's own Service, in every cluster.
SERVICE_RANGE = "10.0.0.0/24"
SERVICE_ADDRESS = "10.0.0.1"


@dataclass(frozen=True)
class PlaneOptions:
    """
    What runs besides etcd and the API server, and where.

    Without a controller manager there are no ServiceAccounts but those that somebody makes, and
    pods need none. With `kubelet` the API server is told how to reach nodes and pods: somebody runs
    a kubelet on the same network. With `aggregation` it may hand groups of its API on to others, as
    metrics for the autoscaler; `controller_options` are further ones of the controller manager, and
    `api_options` of the API server. `heap_percent` is how far a heap may grow before it is cleared
    up, `ready_seconds` how long a program may take to be ready. A folder that is named here must be
    empty and is kept; without one everything is in a temporary folder, which disappears with the
    control plane.
    """

    scheduler: bool = False
    controller_manager: bool = False
    kubelet: bool = False
    aggregation: bool = False
    controller_options: tuple[str, ...] = ()
    api_options: tuple[str, ...] = ()
    heap_percent: int = 400  # a short life: memory is cheaper than collecting it
    ready_seconds: float = 60.0
    folder: Path | None = None

    @property
    def servers(self) -> list[str]:
        wanted = [ETCD, API_SERVER]
        if self.controller_manager:
            wanted.append(CONTROLLER_MANAGER)
        if self.scheduler:
            wanted.append(SCHEDULER)
        return wanted


@dataclass(frozen=True)
class PlaneLayout:
    """Where one control plane lives: its programs, its folder and the ports that it holds."""

    binaries: Mapping[str, Path]
    folder: Path
    ports: Mapping[str, int]
    options: PlaneOptions

    @property
    def administrator(self) -> tuple[Path, Path]:
        return self.folder / "admin.crt", self.folder / "admin.key"

    @property
    def front_proxy(self) -> tuple[Path, Path]:
        return self.folder / "front-proxy.crt", self.folder / "front-proxy.key"

    @property
    def authority(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def authority_key(self) -> Path:
        return self.folder / "ca.key"

    @property
    def service_account_key(self) -> Path:
        return self.folder / "service-accounts.key"

    @property
    def serving_certificate(self) -> Path:
        return self.folder / "serving.crt"

    @property
    def serving_key(self) -> Path:
        return self.folder / "serving.key"

    def url(self, name: str) -> str:
        return f"https://{LOOPBACK}:{self.ports[name]}"

    def program(self, name: str, *options: str) -> list[str]:
        return [str(self.binaries[name]), *options]

    def serving(self, name: str) -> list[str]:
        """Serve on the port that is held for the program, and nowhere but on loopback."""
        return [
            f"--bind-address={LOOPBACK}",
            f"--secure-port={self.ports[name]}",
            "--permit-port-sharing=true",
            f"--tls-cert-file={self.serving_certificate}",
            f"--tls-private-key-file={self.serving_key}",
        ]


def etcd(layout: PlaneLayout) -> list[str]:
    """One member, behind sockets in a folder that only we can enter: no port, no password."""
    clients = f"unix://{layout.folder}/etcd.sock"
    peers = f"unix://{layout.folder}/etcd-peer.sock"
    return layout.program(
        ETCD,
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        # The data need not survive the machine.
        "--unsafe-no-fsync",
    )


def api_server(layout: PlaneLayout) -> list[str]:
    """
    Authorize as clusters do, nodes included, and admit with what is on by default.

    Without a controller manager nobody makes the ServiceAccount `default` of a new namespace, and
    the admission plugin of that name would refuse every pod: then, and only then, it is off.
    """
    wanted = layout.options
    options = [] if wanted.controller_manager else ["--disable-admission-plugins=ServiceAccount"]
    if wanted.kubelet:
        options += _towards_kubelets(layout)
    if wanted.aggregation:
        options += _towards_aggregated(layout)
    return layout.program(
        API_SERVER,
        *layout.serving(API_SERVER),
        f"--etcd-servers=unix://{layout.folder}/etcd.sock",
        f"--client-ca-file={layout.authority}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        *options,
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={layout.service_account_key}",
        f"--service-account-signing-key-file={layout.service_account_key}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--allow-privileged=true",
        # Otherwise it looks for a default route, which a machine without a network has not, and
        # announces an address that nothing in this cluster could reach.
        f"--advertise-address={LOOPBACK}",
        "--endpoint-reconciler-type=none",
        # Ends watches at shutdown; without it the API server waits a minute for them to end.
        "--shutdown-watch-termination-grace-period=1s",
        *wanted.api_options,
    )


def _towards_kubelets(layout: PlaneLayout) -> list[str]:
    """
    Reach nodes by their address, and pods by theirs, since no kube-proxy turns Services into pods.
    """
    certificate, key = layout.administrator
    return [
        "--enable-aggregator-routing=true",
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-client-certificate={certificate}",
        f"--kubelet-client-key={key}",
    ]


def _towards_aggregated(layout: PlaneLayout) -> list[str]:
    """
    Say on whose behalf a request is handed on, and prove by a certificate that it may be believed.
    """
    certificate, key = layout.front_proxy
    return [
        f"--requestheader-client-ca-file={layout.authority}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={certificate}",
        f"--proxy-client-key-file={key}",
    ]


def controller_manager(layout: PlaneLayout, kubeconfig: Path) -> list[str]:
    """
    All default controllers, each under its own ServiceAccount: their rights exist for no other.
    """
    return layout.program(
        CONTROLLER_MANAGER,
        *layout.serving(CONTROLLER_MANAGER),
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={layout.service_account_key}",
        f"--root-ca-file={layout.authority}",
        f"--cluster-signing-cert-file={layout.authority}",
        f"--cluster-signing-key-file={layout.authority_key}",
        # Each controller fetches a token at its start; at the usual 20 a second that takes seconds.
        "--kube-api-qps=500",
        "--kube-api-burst=500",
        # It makes this folder, by default in the middle of the machine.
        f"--flex-volume-plugin-dir={layout.folder / 'volume-plugins'}",
        *layout.options.controller_options,
    )


def scheduler(layout: PlaneLayout, kubeconfig: Path) -> list[str]:
    return layout.program(
        SCHEDULER,
        *layout.serving(SCHEDULER),
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
    )
