#!/usr/bin/python3
"""Writes a YAML file as compact JSON, keys in their order."""
import json
import sys

import yaml


class Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):
    """Keeps dates as the text they are: JSON has no dates."""


Loader.add_constructor("tag:yaml.org,2002:timestamp", Loader.construct_yaml_str)

with open(sys.argv[1], encoding="utf-8") as f:
    document = yaml.load(f, Loader)
json.dump(document, sys.stdout, ensure_ascii=False, separators=(",", ":"))
