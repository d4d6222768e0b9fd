"""What is printed: tables in Markdown on standard output, all of them as JSON in the end."""

import json
import os

from load import median

TABLES = []


def note(text):
    """Progress, to the terminal alone."""
    os.write(2, f"  {text}\n".encode())


def table(*rows):
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "---|" * len(rows[0]))
    for row in rows[1:]:
        print("| " + " | ".join(row) + " |")
    print(flush=True)
    TABLES.append([dict(zip(rows[0], row)) for row in rows[1:]])


def save(file):
    with open(file, "w", encoding="utf-8") as f:
        json.dump(TABLES, f, indent=1, ensure_ascii=False)


def kilo(per_s):
    return f"{per_s / 1000:.1f}k"


def spread(values, form="{:.2f}"):
    """Median, and in brackets the lowest and highest."""
    return f"{form.format(median(values))} ({form.format(min(values))}–{form.format(max(values))})"


def check(what, run):
    if run.refused or run.broken:
        note(f"{what}: {run.refused} refused, {run.broken} broken")


def write_script(o, name, text):
    """A script of wrk's."""
    path = os.path.join(o.dir, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path
