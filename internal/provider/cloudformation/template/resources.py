"""Writes resources.txt.gz: what package template knows of AWS's resource types.

It reads the schemas that cfn-lint brings along. Run it by `make resource-schemas`,
with cfn-lint installed; raise the version there to learn new types.

A line for each type, its members parted by tabs, their items by spaces:
type, properties that cannot change in place, those that sometimes cannot, names that
people could give it (! before those that it must have), the property that holds
tags, and what CloudFormation's handlers call to create, read, update and delete it.
"""

import gzip
import importlib.resources
import json
import pathlib
import sys


def names(schema):
    """The properties that name the resource in its account and region."""
    kind = schema["typeName"].rsplit("::", 1)[1]
    identifier = schema.get("primaryIdentifier", [])
    fixed = set(schema.get("createOnlyProperties", [])) | set(identifier)
    for name, says in sorted(schema.get("properties", {}).items()):
        path = "/properties/" + name
        if path in schema.get("readOnlyProperties", []) or path not in fixed:
            continue
        if says.get("type", "string") != "string" or "$ref" in says:
            continue
        stem = next((name[: -len(end)] for end in ("Name", "NamePrefix", "Identifier", "Id") if name.endswith(end)), None)
        if stem is None or path in identifier and len(identifier) > 1:
            continue  # beside others it names a part of something
        if stem == "" or kind.endswith(stem) or path in identifier and name.endswith("Name"):
            yield ("!" if name in schema.get("required", []) else "") + name


def paths(schema, member):
    return [p.removeprefix("/properties/") for p in schema.get(member, [])]


def line(schema):
    handlers = schema.get("handlers", {})
    tags = schema.get("tagging", {}).get("tagProperty", "") if schema.get("tagging", {}).get("taggable", True) else ""
    if not tags and "Tags" in schema.get("properties", {}):
        tags = "/properties/Tags"
    columns = [
        paths(schema, "createOnlyProperties"),
        paths(schema, "conditionalCreateOnlyProperties"),
        names(schema),
        [tags.removeprefix("/properties/")],
    ]
    for verb in ("create", "read", "update", "delete"):
        columns.append({p for p in handlers.get(verb, {}).get("permissions", []) if ":" in p})
    return "\t".join([schema["typeName"]] + [" ".join(sorted(c)) for c in columns])


def main(target):
    folder = importlib.resources.files("cfnlint") / "data" / "schemas" / "resources"
    schemas = [json.loads(f.read_text()) for f in folder.iterdir() if f.name.endswith(".json")]
    text = "\n".join(sorted(line(s) for s in schemas)) + "\n"
    pathlib.Path(target).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


main(sys.argv[1])
