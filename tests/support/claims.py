"""Resource claims as users write them, and what the API server has beside them."""

from typing import Any

from gpufence import names

CLASS = names.DRA_CLASSES[0]
Json = dict[str, Any]


def device_class() -> Json:
    """Describe the class of all GPUs of NVIDIA's driver."""
    expression = f"device.driver == '{names.DRA_DRIVER}'"
    return {
        "apiVersion": names.RESOURCE_GROUP,
        "kind": "DeviceClass",
        "metadata": {"name": CLASS},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def class_of(name: str, driver: str) -> Json:
    """Describe a class of one's own, of all devices of a driver that call themselves like it."""
    expression = f"device.driver == '{driver}' && device.attributes['{driver}'].?of.orValue('')"
    selector = {"cel": {"expression": f"{expression} == '{name}'"}}
    return {
        "apiVersion": names.RESOURCE_GROUP,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [selector]},
    }


def slice_of(node: str, of: str, driver: str, memory: str = names.DRA_MEMORY) -> Json:
    """
    Describe one device of such a class, 40 GiB that claims share in steps, in a pool of its own.
    """
    policy = {"default": "1Gi", "validRange": {"min": "256Mi", "step": "256Mi"}}
    device = {
        "name": of,
        "allowMultipleAllocations": True,
        "attributes": {"of": {"string": of}, "uuid": {"string": f"GPU-{of}"}},
        "capacity": {memory: {"value": "40Gi", "requestPolicy": policy}},
    }
    pool = {"name": f"{node}-{of}", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": names.RESOURCE_GROUP,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{of}"},
        "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": [device]},
    }


def request(memory: str = "", name: str = "gpu", **fields: Any) -> Json:
    """Describe a request for one card, or so much memory of one."""
    capacity = {"capacity": {"requests": {names.DRA_MEMORY: memory}}} if memory else {}
    return {"name": name, "exactly": {"deviceClassName": CLASS, **capacity, **fields}}


def claim(name: str, *requests: Json) -> Json:
    return {
        "apiVersion": names.RESOURCE_GROUP,
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": list(requests)}},
    }


def template(name: str, *requests: Json) -> Json:
    return {
        "apiVersion": names.RESOURCE_GROUP,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": list(requests)}}},
    }


def result(device: str = "gpu-0", memory: str = "", name: str = "gpu", **fields: Any) -> Json:
    """Describe what a request was given."""
    consumed = {"consumedCapacity": {names.DRA_MEMORY: memory}} if memory else {}
    return {
        "request": name,
        "driver": names.DRA_DRIVER,
        "pool": "node-1",
        "device": device,
        **consumed,
        **fields,
    }


def allocated(item: Json, *results: Json, users: tuple[str, ...] = ("uid-1",)) -> Json:
    """Give a claim what its scheduler has chosen, for pods with these UIDs."""
    status = {
        "allocation": {"devices": {"results": list(results)}},
        "reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in users],
    }
    return {**item, "metadata": {"uid": f"uid-{item['metadata']['name']}", **item["metadata"]}} | {
        "status": status
    }


def claiming(container: Json, **uses: str) -> Json:
    """Let a container use claims of its pod, all of them or one request: `claiming(c, gpu="")`."""
    used = [{"name": name, **({"request": one} if one else {})} for name, one in uses.items()]
    return {**container, "resources": {**container.get("resources", {}), "claims": used}}


def by_template(name: str, of: str) -> Json:
    return {"name": name, "resourceClaimTemplateName": of}


def by_name(name: str, claim_name: str) -> Json:
    return {"name": name, "resourceClaimName": claim_name}
