"""What the webhook is compared with: the shortest honest FastAPI handler, with a prepared patch."""

import base64
import json
from typing import Any

from fastapi import FastAPI, Request

PATCH = base64.b64encode(
    json.dumps(
        [
            {
                "op": "add",
                "path": "/spec/containers/0/env/-",
                "value": {
                    "name": f"NAME_{n}",
                    "valueFrom": {
                        "fieldRef": {
                            "fieldPath": f"metadata.annotations['env.gpufence.io/NAME_{n}']"
                        }
                    },
                },
            }
            for n in range(12)
        ]
    ).encode()
).decode()

app = FastAPI()


@app.post("/v1/pods/cap")
async def mutate(request: Request) -> dict[str, Any]:
    review = await request.json()
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": review["request"]["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": PATCH,
        },
    }
