"""Who plays: simulated frameworks, or a real one on the simulated cards."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.compiled import default_cache

_TRAINER = """\
apiVersion: v1
kind: Pod
metadata:
  name: trainer
spec:
  restartPolicy: Never
  containers:
  - name: trainer
    image: gpufence/workload
    args: [{framework}, --context, 300Mi, --on-oom, wait, "hold 1Gi; grow 2Gi/s to 6Gi"]
    env:
    - {{name: PYTORCH_ALLOC_CONF, value: "expandable_segments:True"}}{cache}
    resources:
      limits: {{aliyun.com/gpu-mem: 3}}
"""
_GREEDY = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: greedy
spec:
  selector: {{matchLabels: {{app: greedy}}}}
  template:
    metadata: {{labels: {{app: greedy}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: greedy
        image: gpufence/workload
        args: [{framework}--context, 300Mi, "hold 1Gi; after 3s grow 1Gi/s to 9Gi"]{cache}
        resources:
          limits: {{aliyun.com/gpu-mem: 3}}
"""


@dataclass(frozen=True, slots=True)
class Cast:
    """The manifests of the two tenants, how the story calls them, and what a real one is run by."""

    trainer: str
    greedy: str
    trainer_is: str
    greedy_is: str
    wheels: str = ""


SIMULATED = Cast(
    _TRAINER.format(framework="--framework, torch", cache=""),
    _GREEDY.format(framework="", cache=""),
    "a PyTorch (simulated)",
    "A CUDA program of its own reads none of our variables.",
)


def real(wheels: str) -> Cast:
    """
    Let a real PyTorch play both: one keeps its cap, the other takes it away by PyTorch's own call.
    """
    # A pod has a home of its own; the environment is in this person's.
    variable = f'{{name: XDG_CACHE_HOME, value: "{default_cache().parent}"}}'
    return Cast(
        _TRAINER.format(framework=f"--wheels, {wheels}", cache=f"\n    - {variable}"),
        _GREEDY.format(
            framework=f"--wheels, {wheels}, --uncap, ", cache=f"\n        env: [{variable}]"
        ),
        f"a real PyTorch ({wheels}, its own unmodified wheel, on a simulated driver)",
        "A program may reset its cap: this PyTorch calls set_per_process_memory_fraction(1.0).",
        wheels,
    )
