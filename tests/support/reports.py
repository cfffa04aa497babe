"""
OpenReports' kind, as far as a Report of ours has to do with it: the fields and words of its API
v1alpha1, what is required, and that whatever it does not know is dropped.
"""

from gpufence import names
from kube import JsonObject, group

NAME = "reports.openreports.io"
DEFINITION = group("apiextensions.k8s.io/v1", "customresourcedefinitions", NAME)
WORDS = ["pass", "fail", "warn", "error", "skip"]
SEVERITIES = ["critical", "high", "low", "medium", "info"]
TEXT: JsonObject = {"type": "string"}
NUMBER: JsonObject = {"type": "integer"}
TEXTS: JsonObject = {"type": "object", "additionalProperties": TEXT}
ABOUT = ("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid")


def report_definition() -> JsonObject:
    """Make the CustomResourceDefinition."""
    api, _, version = names.REPORT_GROUP.partition("/")
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": api,
            "scope": "Namespaced",
            "names": {
                "kind": "Report",
                "listKind": "ReportList",
                "plural": names.REPORTS,
                "singular": "report",
                "shortNames": ["reps"],
            },
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _schema()},
                }
            ],
        },
    }


def _schema() -> JsonObject:
    return _object(
        source=TEXT,
        scope={**_object(**dict.fromkeys(ABOUT, TEXT)), "x-kubernetes-map-type": "atomic"},
        configuration=_object(
            "limits",
            limits=_object(maxResults=NUMBER, statusFilter=_list({**TEXT, "enum": WORDS})),
        ),
        summary=_object(**dict.fromkeys(WORDS, NUMBER)),
        results=_list(_result()),
    )


def _result() -> JsonObject:
    about = {**_object(**dict.fromkeys(ABOUT, TEXT)), "x-kubernetes-map-type": "atomic"}
    return _object(
        "policy",
        policy=TEXT,
        rule=TEXT,
        category=TEXT,
        source=TEXT,
        message=TEXT,
        result={**TEXT, "enum": WORDS},
        severity={**TEXT, "enum": SEVERITIES},
        scored={"type": "boolean"},
        properties=TEXTS,
        resources=_list(about),
        timestamp=_object("nanos", "seconds", nanos=NUMBER, seconds=NUMBER),
    )


def _object(*required: str, **properties: JsonObject) -> JsonObject:
    made: JsonObject = {"type": "object", "properties": properties}
    return {**made, "required": [*required]} if required else made


def _list(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}
