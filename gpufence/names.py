"""
Every label, annotation, resource, variable, event reason and metric of gpufence, spelled once.

Each line says why the name exists. Manifests under deploy/ are checked against this module; which
dialect a resource belongs to is said in gpufence/dialects.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "gpufence.io/"  # every key of ours starts so, which lets one policy freeze them all
ENV_PREFIX: Final = "env.gpufence.io/"  # final values that containers read through a fieldRef

# Objects of the installation
SYSTEM_NAMESPACE: Final = "gpufence-system"  # where webhook, agents and certificates live
POLICY_CONFIGMAP: Final = "gpufence-policy"  # the kill switch of all agents
POLICY_MAX_MODE: Final = "max-mode"  # its key: the highest mode any agent may act in
POLICY_DEFAULT_MAX_MODE: Final = "default-max-mode"  # its key: the same, unless people say it
POLICY_MAX_IDLE: Final = "max-idle"  # its key: how far the controller may go with idle GPUs
AGGREGATE: Final = "gpufence.io/aggregate-to-controller"  # ClusterRoles for further kinds of owners
AGENT: Final = "gpufence-agent"  # its DaemonSet, its ServiceAccount, and who its Events are from
CONTROLLER: Final = "gpufence-controller"  # its Service, its Lease and its ServiceAccount
NEED_PREFIX: Final = "gpufence-need-"  # + node: ConfigMap in which its agent keeps what models need
NEED_KEY: Final = "need.json"  # its key
NEED_WRITTEN: Final = "written"  # beside it: when
NEED_LABEL: Final = "gpufence-need"  # its app.kubernetes.io/name
WHY_PREFIX: Final = "gpufence-why-"  # + node: ConfigMap in which its agent keeps how pods ended
WHY_KEY: Final = "records.json"  # its key
WHY_LABEL: Final = "gpufence-why"  # its app.kubernetes.io/name
WHY_RUNNING: Final = "running"  # the page with what has happened so far to pods that are there
QUOTA_LEDGER: Final = "gpufence-quota"  # ConfigMap of pods that were let in a moment ago
MANAGED_BY: Final = "app.kubernetes.io/managed-by"  # label of what a program makes: its name
PROFILE_GROUP: Final = "gpufence.io/v1alpha1"  # API of our own objects
PROFILES: Final = "gpumemoryprofiles"  # there: what the models of one owner need, short gmp
WEBHOOK_CONFIGURATION: Final = "gpufence"  # sorts before mutating-kai-admission, as KAI needs
WEBHOOK_SERVICE: Final = "gpufence-webhook"  # whom the API server calls
TLS_SECRET: Final = "gpufence-webhook-tls"  # noqa: S105 - a name: the serving pair
CA_SECRET: Final = "gpufence-ca"  # noqa: S105 - a name: the signing key, apart
CERTS_INSTALL: Final = (
    "gpufence-certs-install"  # the install's account, rights and Job, gone after it
)
EXEMPT_NAMESPACES: Final = ("kube-system", SYSTEM_NAMESPACE)  # never rewritten, never evicted

# Labels and annotations that people set
MODE: Final = "gpufence.io/mode"  # namespace label: how far gpufence may go there
MEMORY: Final = "gpufence.io/memory"  # the pod's limit per card
MEMORY_OF_CONTAINER: Final = "gpufence.io/memory."  # + container: that container's part
BURST: Final = "gpufence.io/burst"  # how far above what is promised it may go while that is free
BURST_SERVERS: Final = "gpufence.io/burst-servers"  # enabled: servers are told the limit, too
PROCESSES_PER_CARD: Final = "gpufence.io/processes-per-card"  # who share one part on one card
HEADROOM: Final = "gpufence.io/headroom"  # how much of the limit the framework may use
PYTHON_HOOK: Final = "gpufence.io/python-hook"  # mount the start-up hook for TensorFlow, old torch
ARGS: Final = "gpufence.io/args"  # lower or append the server's own memory flag
GROWTH: Final = "gpufence.io/growth"  # in observe: grow on demand, so that the need can be measured
OOM_MESSAGE: Final = "gpufence.io/oom-message"  # containers end with their last lines as a message
INJECT: Final = (
    "gpufence.io/inject"  # "disabled" leaves containers alone, still measured and fenced
)
IDLE_EVIDENCE: Final = "gpufence.io/idle-evidence"  # gpu: what its CPU does is no work; or all
FRAMEWORK: Final = "gpufence.io/framework"  # names what runs where command and image do not
FRAMEWORK_OF_CONTAINER: Final = "gpufence.io/framework."  # + container: what runs in that one
MAX_MEMORY: Final = "gpufence.io/max-memory"  # namespace: ceiling of limits pods grant themselves
MAX_BURST: Final = "gpufence.io/max-burst"  # namespace: ceiling of that
QUOTA_MEMORY: Final = "gpufence.io/quota-memory"  # namespace: sum of amounts in annotations there
IMPLIED_LIMITS: Final = "gpufence.io/implied-limits"  # namespace: enforce card / shared clients
UNDECLARED_USE: Final = (
    "gpufence.io/undeclared"  # namespace: "evict" pods that hold memory and ask for no GPU
)

# Labels and annotations about GPUs that are claimed and not used
IDLE: Final = "gpufence.io/idle"  # namespace label: what becomes of idle GPUs there
IDLE_AFTER: Final = "gpufence.io/idle-after"  # namespace or owner: released after so long
IDLE_AFTER_CONTENDED: Final = "gpufence.io/idle-after-contended"  # the same where somebody waits
KEEP_UNTIL: Final = "gpufence.io/keep-until"  # owner or namespace: not released before that
WAKE: Final = "gpufence.io/wake"  # namespace or owner: who brings it back
PODS_WITHOUT_GPU: Final = (
    "gpufence.io/pods-without-gpu"  # owner or namespace: whether those keep an owner
)
RELEASED: Final = "gpufence.io/released"  # on an owner, by the controller: what it was, and why


# Annotations that gpufence writes on pods
PLAN: Final = "gpufence.io/plan"  # what was decided and why, for binder, agent and plugin
CARD: Final = "gpufence.io/card"  # the card the values were computed for
NODE: Final = "gpufence.io/node"  # the node they are exact for; absent = conservative
INJECTED: Final = "gpufence.io/injected"  # its absence alone means: the webhook never saw this pod
INJECTED_YES: Final = "yes"  # its containers were told what they may use
INJECTED_NOTHING: Final = "nothing"  # mode observe, or a library caps the pod by itself
INJECTED_OPTED_OUT: Final = "opted-out"  # the pod asked for no settings
SUMMARY: Final = "gpufence.io/summary"  # one line a person can read
WARNINGS: Final = "gpufence.io/warnings"  # what the creator of the pod was warned about
COUNTED: Final = "gpufence.io/counted"  # under which the webhook counted it on the quota of memory
SITECUSTOMIZE: Final = "gpufence.io/sitecustomize"  # the start-up hook's source
SITE_LINE: Final = "gpufence.io/site-line"  # the line by which site folders start that source
GPU_IDLE: Final = "gpufence.io/GPUIdle"  # pod condition, by the agent: it does nothing on its cards
GPU_MEMORY: Final = "gpufence.io/GPUMemory"  # pod condition, by the agent: within its limit
CARDS: Final = "gpufence.io/cards"  # on a Node, by its own agent: the cards it really has
STOPPED: Final = "kubeflow-resource-stopped"  # on Kubeflow's Notebooks: since when they are stopped
SIMULATED: Final = "gpufence.io/simulated"  # label of nodes whose cards the simulator plays
DRIVER_LIMITS: Final = "gpufence.io/driver-limits"  # label of nodes, "true": the driver can refuse
DRIVER_CANARY: Final = "gpufence.io/driver-canary"  # on a Node, by its own agent: what it has shown
CANARY: Final = "gpufence-canary"  # DaemonSet whose container shows whether the driver holds one

# How sharing systems declare memory
GPUSHARE_MEMORY: Final = "aliyun.com/gpu-mem"  # units of GiB or MiB, the node decides
GPUSHARE_COUNT: Final = "aliyun.com/gpu-count"  # on nodes: cards that share gpu-mem
GPUSHARE_CORES: Final = "aliyun.com/gpu-core.percentage"  # ACK's cGPU: cores, and memory isolated
VOLCANO_MEMORY: Final = "volcano.sh/gpu-memory"  # MiB times the device plugin's factor
VOLCANO_NUMBER: Final = "volcano.sh/gpu-number"  # whole cards
VOLCANO_VGPU_MEMORY: Final = "volcano.sh/vgpu-memory"  # MiB times factor for each vGPU
VOLCANO_VGPU_PERCENTAGE: Final = "volcano.sh/vgpu-memory-percentage"  # of a card, for each vGPU
VOLCANO_VGPU_NUMBER: Final = "volcano.sh/vgpu-number"  # how many vGPUs
HAMI_MEMORY: Final = "nvidia.com/gpumem"  # MiB on each card
HAMI_PERCENTAGE: Final = "nvidia.com/gpumem-percentage"  # of each card
NVIDIA_GPU: Final = "nvidia.com/gpu"  # whole cards, or shares of one without an amount
NVIDIA_GPU_SHARED: Final = "nvidia.com/gpu.shared"  # the same, renamed by the device plugin
NVIDIA_MIG_PREFIX: Final = "nvidia.com/mig-"  # + profile: a slice that hardware fences
KAI_MEMORY: Final = "gpu-memory"  # pod annotation: MiB on each card
KAI_FRACTION: Final = "gpu-fraction"  # pod annotation: share of each card
KAI_DEVICES: Final = "gpu-fraction-num-devices"  # pod annotation: how many cards
KAI_CONTAINER: Final = "gpu-fraction-container-name"  # pod annotation: who; default the first
KAI_OF_CONTAINER: Final = "nvidia.com/container."  # + container and one of the next three
KAI_LIMIT: Final = ".gpu-memory.limit"  # amount on each card that the driver holds it to
KAI_REQUEST: Final = ".gpu-memory.request"  # amount on each card that its scheduler counts
KAI_GIVEN: Final = ".gpus.devices"  # its cards; KAI's binder writes it where the driver holds pods
KAI_DRIVER: Final = (KAI_LIMIT, KAI_REQUEST)
KAI_ISOLATE: Final = "kai-resource-isolator.io/inject"  # pod annotation: "false" leaves it out
KAI_ISOLATOR: Final = "kai-resource-isolator"  # how the volumes of KAI's isolator begin
RESOURCE_GROUP: Final = "resource.k8s.io/v1"  # ResourceClaims, ResourceSlices and DeviceClasses
DRA_DRIVER: Final = "gpu.nvidia.com"  # whose devices are GPUs: resource claims and slices
DRA_CLASSES: Final = ("gpu.nvidia.com", "mig.nvidia.com")  # its DeviceClasses: certainly GPUs
DRA_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"  # + class: asks for its devices
DRA_MEMORY: Final = "memory"  # capacity of a device: what claims ask for, and have consumed
DRA_MEMORIES: Final = (DRA_MEMORY, f"{DRA_DRIVER}/{DRA_MEMORY}")  # the two names it may go by
CUDA_LIMIT: Final = "CUDA_DEVICE_MEMORY_LIMIT"  # variable: what HAMi's library, KAI's too, holds to

# Modules of gpufence.dialects, in the order in which their declarations are read and listed
DIALECTS: Final = (
    "gpushare",
    "volcano",
    "volcano_vgpu",
    "hami",
    "nvidia",
    "kai",
    "mig",
    "dra",
    "annotation",
)
# What runs in a container, as plans and `gpufence.io/framework` call it
ENGINES: Final = (
    *("vllm", "sglang", "tgi", "tensorrt-llm", "triton", "tf-serving", "nim", "ollama"),
    *("llama-cpp", "lmdeploy", "comfyui", "dask-cuda", "spark", "xinference", "tei", "ray", "sshd"),
    "fastdeploy",
)
FRAMEWORKS: Final = ("none", "pytorch", "tensorflow", "jax", "cupy", "paddle", "julia")
"""Other values of that annotation: nothing here plans by itself."""

SPINNING: Final = frozenset({"vllm", "sglang", "triton"})
"""Engines whose loop burns a core while nobody asks them anything."""

USER_KEYS: Final = (
    MEMORY,
    PROCESSES_PER_CARD,
    HEADROOM,
    PYTHON_HOOK,
    ARGS,
    GROWTH,
    OOM_MESSAGE,
    INJECT,
    FRAMEWORK,
    IDLE_EVIDENCE,
    BURST,
    BURST_SERVERS,
)
WRITTEN_KEYS: Final = (
    *(PLAN, CARD, NODE, INJECTED, SUMMARY, WARNINGS, SITECUSTOMIZE, SITE_LINE),
    COUNTED,
)

# Bookkeeping of schedulers on pods; forged at create, it makes them count wrong
GPUSHARE_BOOKKEEPING: Final = (
    "ALIYUN_COM_GPU_MEM_IDX",
    "ALIYUN_COM_GPU_MEM_DEV",
    "ALIYUN_COM_GPU_MEM_POD",
    "ALIYUN_COM_GPU_MEM_ASSIGNED",
    "ALIYUN_COM_GPU_MEM_ASSUME_TIME",
    "scheduler.framework.gpushare.allocation",
    "scheduler.framework.gpushare.assigned",
    "scheduler.framework.gpushare.assume-time",
)
VOLCANO_BOOKKEEPING: Final = (
    "volcano.sh/gpu-index",
    "volcano.sh/predicate-time",
    "volcano.sh/gpu-assigned",
    "volcano.sh/vgpu-node",
    "volcano.sh/vgpu-time",
    "volcano.sh/vgpu-ids-new",
    "volcano.sh/devices-to-allocate",
    "volcano.sh/bind-phase",
    "volcano.sh/bind-time",
)
GPUSHARE_CARD_INDEX: Final = "ALIYUN_COM_GPU_MEM_IDX"  # the card gpushare assigned, once bound
GPUSHARE_ALLOCATION: Final = "scheduler.framework.gpushare.allocation"  # ACK: units of each card
GPUSHARE_CARD_UNITS: Final = "ALIYUN_COM_GPU_MEM_DEV"  # that card's size in the node's unit
VOLCANO_CARD_INDEX: Final = "volcano.sh/gpu-index"  # the card Volcano assigned, once bound

# What nodes say about their cards
GPU_PRESENT: Final = "nvidia.com/gpu.present"  # "true" on nodes with cards, whatever offers them
GFD_MEMORY: Final = "nvidia.com/gpu.memory"  # MiB of one card, by GPU feature discovery
GFD_COUNT: Final = "nvidia.com/gpu.count"  # physical cards
GFD_PRODUCT: Final = "nvidia.com/gpu.product"  # model, with -SHARED when shared
GFD_COMPUTE_MAJOR: Final = "nvidia.com/gpu.compute.major"  # compute capability
GFD_COMPUTE_MINOR: Final = "nvidia.com/gpu.compute.minor"  # compute capability
GFD_REPLICAS: Final = "nvidia.com/gpu.replicas"  # shares advertised for each card
GFD_SHARING: Final = "nvidia.com/gpu.sharing-strategy"  # none, mps or time-slicing
GFD_MIG_MEMORY: Final = "nvidia.com/mig-{profile}.memory"  # MiB of one slice, mixed strategy
ACK_SCHEDULE: Final = "ack.node.gpu.schedule"  # cgpu and core_mem: cGPU shows limits as the card
ACK_CGPU: Final = "cgpu"  # the same, older: "true"
KARPENTER_GPU_MEMORY: Final = "karpenter.k8s.aws/instance-gpu-memory"  # MiB of each, at birth
KARPENTER_GPU_NAME: Final = "karpenter.k8s.aws/instance-gpu-name"  # such as t4, at birth
KARPENTER_GPU_COUNT: Final = "karpenter.k8s.aws/instance-gpu-count"  # at birth
KARPENTER_POOL: Final = "karpenter.sh/nodepool"  # whose nodes come and go
EKS_GPU_MEMORY: Final = "eks.amazonaws.com/instance-gpu-memory"  # the same three in EKS Auto Mode
EKS_GPU_NAME: Final = "eks.amazonaws.com/instance-gpu-name"  # at birth
EKS_GPU_COUNT: Final = "eks.amazonaws.com/instance-gpu-count"  # at birth
EKS_COMPUTE: Final = "eks.amazonaws.com/compute-type"  # auto: its nodes come and go
EKS_ACCELERATOR: Final = "k8s.amazonaws.com/accelerator"  # such as nvidia-tesla-t4, of node groups
GKE_ACCELERATOR: Final = "cloud.google.com/gke-accelerator"  # such as nvidia-l4, at birth
GKE_ACCELERATOR_COUNT: Final = "cloud.google.com/gke-accelerator-count"  # at birth
GKE_PARTITION: Final = "cloud.google.com/gke-gpu-partition-size"  # MIG profile of all its cards
GKE_SHARING: Final = "cloud.google.com/gke-gpu-sharing-strategy"  # time-sharing or mps
GKE_CLIENTS: Final = "cloud.google.com/gke-max-shared-clients-per-gpu"  # shares of each card

# What the start-up hook is mounted as
HOOK_VOLUME: Final = "gpufence-python"  # a downwardAPI volume of the annotation below
HOOK_FOLDER: Final = "/gpufence"  # holds nothing but the hook, since Python looks into all of it
HOOK_FILE: Final = "sitecustomize.py"  # the name Python imports by itself
HOOK_SITE_FILE: Final = "gpufence.pth"  # what site folders are read for

# Keys of Kubernetes itself
OS: Final = "kubernetes.io/os"  # node label: windows has none of our variables
DEFAULT_SCHEDULER: Final = "default-scheduler"  # what the API server writes where nobody chose
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"  # label the API server sets on namespaces
MIRROR: Final = "kubernetes.io/config.mirror"  # static pods as the API shows them

# Environment of the user's containers
PYTORCH_CONF: Final = "PYTORCH_ALLOC_CONF"  # PyTorch >= 2.10
PYTORCH_CUDA_CONF: Final = "PYTORCH_CUDA_ALLOC_CONF"  # hides the one above when set at all
XLA_FRACTION: Final = "XLA_PYTHON_CLIENT_MEM_FRACTION"  # JAX, the name every version knows
XLA_NEW_FRACTION: Final = "XLA_CLIENT_MEM_FRACTION"  # both non-empty = JAX falls back to CPU
XLA_ALLOCATOR: Final = "XLA_PYTHON_CLIENT_ALLOCATOR"  # platform and cuda_async ignore the fraction
XLA_PREALLOCATE: Final = "XLA_PYTHON_CLIENT_PREALLOCATE"  # "false" grows on demand
TF_GROWTH: Final = "TF_FORCE_GPU_ALLOW_GROWTH"  # lazy, not a cap; the only one TensorFlow reads
TF_UNIFIED: Final = "TF_FORCE_UNIFIED_MEMORY"  # lifts every cap of XLA
TF_ALLOCATOR: Final = "TF_GPU_ALLOCATOR"  # cuda_malloc_async keeps to no cap
GGML_UNIFIED: Final = "GGML_CUDA_ENABLE_UNIFIED_MEMORY"  # llama.cpp; nobody can count that memory
DRIVER_REQUEST: Final = "NVIDIA_GPU_MEMORY_REQUEST"  # MiB: the driver's soft limit; with the next
DRIVER_LIMIT: Final = "NVIDIA_GPU_MEMORY_LIMIT"  # MiB: the driver refuses what would pass it
CDI_ANNOTATION: Final = "CDI_ANNOTATION"  # what component driver-cdi asks the runtime for
VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"  # overrides what the device plugin assigned
CUPY_LIMIT: Final = "CUPY_GPU_MEMORY_LIMIT"  # bytes; an empty value is an error there
PADDLE_LIMIT: Final = "FLAGS_gpu_memory_limit_mb"  # MiB
JULIA_LIMIT: Final = "JULIA_CUDA_HARD_MEMORY_LIMIT"  # <n>MiB; an empty value is an error there
CUDA_LOADING: Final = "CUDA_MODULE_LOADING"  # LAZY keeps the context small
ENV_LIMIT_BYTES: Final = "GPUFENCE_MEMORY_LIMIT_BYTES"  # for programs of the user's own
ENV_FRACTION: Final = "GPUFENCE_MEMORY_FRACTION"  # the same as a share of the card
ENV_TF_FRACTION: Final = "GPUFENCE_TF_FRACTION"  # for per_process_gpu_memory_fraction
ENV_REQUEST_BYTES: Final = "GPUFENCE_REQUEST_BYTES"  # hook: what is promised to the container
ENV_GIVE_BACK: Final = "GPUFENCE_GIVE_BACK_BYTES"  # hook: gives back where a card has less free
ENV_SERVER: Final = "GPUFENCE_SERVER_FRACTION"  # what a server's own memory flag is set to
ENV_SERVER_MEMORY: Final = "GPUFENCE_SERVER_MEMORY"  # the same where that flag is an amount
VLLM_GRAPHS: Final = "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"  # "1": vLLM counts its CUDA graphs
VLLM_ARGS: Final = "VLLM_ADDITIONAL_ARGS"  # what KServe's templates put behind `vllm serve`
TGI_FRACTION: Final = "CUDA_MEMORY_FRACTION"  # TGI >= 1.0: what it plans with
NIM_ARGS: Final = "NIM_PASSTHROUGH_ARGS"  # NIM 2.x: arguments of the engine inside
NIM_CACHE: Final = "NIM_KVCACHE_PERCENT"  # NIM 1.x, seen in use only
DYNAMO_FRACTION: Final = "DYN_TRTLLM_FREE_GPU_MEMORY_FRACTION"  # Dynamo's worker of TensorRT-LLM
DJL_FRACTION: Final = "OPTION_GPU_MEMORY_UTILIZATION"  # DJL Serving hands it to vLLM within
RUNPOD_FRACTION: Final = "GPU_MEMORY_UTILIZATION"  # RunPod's worker of vLLM, likewise
COMFYUI_ARGS: Final = "CLI_ARGS"  # images of ComfyUI put it behind main.py
OLLAMA_OVERHEAD: Final = "OLLAMA_GPU_OVERHEAD"  # bytes left free; Ollama 0.3.10 to 0.29
LLAMA_FIT: Final = "LLAMA_ARG_FIT_TARGET"  # MiB left free; llama.cpp, and Ollama >= 0.30
LLAMA_FITS: Final = "LLAMA_ARG_FIT"  # off: it leaves nothing free on purpose
LLAMA_LAYERS: Final = "LLAMA_ARG_N_GPU_LAYERS"  # a number: likewise
PYTHON_PATH: Final = "PYTHONPATH"  # where Python finds the start-up hook

# Settings that several programs read
SETTING_PREFIX: Final = "GPUFENCE_"  # every setting of ours starts so
GPUSHARE_UNIT: Final = "GPUFENCE_GPUSHARE_UNIT"  # GiB or MiB, until a node says
VOLCANO_FACTOR: Final = "GPUFENCE_VOLCANO_FACTOR"  # the device plugin's --gpu-memory-factor
DEFAULT_CARD: Final = "GPUFENCE_DEFAULT_CARD"  # memory of a card where no node tells
LARGEST_CARD: Final = "GPUFENCE_LARGEST_CARD"  # the most a card has whose node does not tell
DEFAULT_CAPABILITY: Final = "GPUFENCE_DEFAULT_COMPUTE_CAPABILITY"  # of that card, such as 7.5
DRIVER_SETTING: Final = "GPUFENCE_DRIVER_LIMITS"  # off, on, labelled, auto: where the driver holds
RESERVE: Final = "GPUFENCE_RESERVE"  # replaces the context reserve of the table
SCHEDULER_PREFIX: Final = "GPUFENCE_SCHEDULER_"  # + dialect: who schedules its pods
TOLERATIONS: Final = "GPUFENCE_TOLERATIONS"  # further ones for GPU pods, key=value:Effect,...
HELP_URL: Final = "GPUFENCE_HELP_URL"  # of the page about pods, which Events and refusals link to
SIMULATOR_STATE: Final = "GPUFENCE_SIMULATOR_STATE"  # file of the simulated cards

# Event reasons
IDLE_WARNING: Final = "GPUIdleWarning"  # an owner's pods are idle, and when they go
IDLE_RELEASED: Final = "GPUIdleReleased"  # they went
IDLE_WOKEN: Final = "GPUIdleWoken"  # they are back, by us
IDLE_CONTESTED: Final = "GPUIdleReleaseContested"  # somebody scaled it up twice: left alone
IDLE_SUSPENDED: Final = "GPUIdleReleaseSuspended"  # most pods became idle at once: doubtful
IDLE_FAILED: Final = "GPUIdleReleaseFailed"  # the API refused
LIMIT_EXCEEDED: Final = "GPUMemoryLimitExceeded"  # a pod is over its limit
WOULD_EVICT: Final = "GPUMemoryWouldEvict"  # it would be evicted in a higher mode
EVICTED: Final = "GPUMemoryEvicted"  # it was
EVICTION_BLOCKED: Final = "GPUMemoryEvictionBlocked"  # a disruption budget refuses
EVICTION_FAILED: Final = "GPUMemoryEvictionFailed"  # the API refused for another reason
UNFENCED: Final = "GPUMemoryUnfenced"  # of a Node: a card without memory of its own
TERMINATION_STUCK: Final = "GPUMemoryTerminationStuck"  # it is deleted but does not end
CAP_INEFFECTIVE: Final = "GPUMemoryCapIneffective"  # a process above the cap it was given
CAP_REACHED: Final = "GPUMemoryCapReached"  # a container failed at the cap it was given
CAP_TOO_LOW: Final = "GPUMemoryCapTooLow"  # a cap is a fraction of a larger card than its own
UNDECLARED: Final = "GPUMemoryUndeclared"  # GPU use without any amount
OVERCOMMITTED: Final = "GPUMemoryOvercommitted"  # limits on a card exceed the card
RECALLED: Final = "GPUMemoryRecalled"  # what a pod borrows is missed: it gives back or goes
LENT: Final = "GPUMemoryLent"  # a pod misses what it lent, or has it back
SHORT: Final = "GPUMemoryShort"  # a card lacks what was promised, and no eviction cures that
UNATTRIBUTED: Final = "GPUMemoryUnattributed"  # memory that belongs to no pod we know
NVML_UNAVAILABLE: Final = "NVMLUnavailable"  # measuring stopped
EVICTION_SUSPENDED: Final = "GPUMemoryEvictionSuspended"  # too many violators at once
LIMIT_ABSENT: Final = "GPUMemoryLimitAbsent"  # the driver holds another limit than was written
LIMIT_UNSUPPORTED: Final = "GPUMemoryLimitUnsupported"  # of a Node: pods with such limits fail
