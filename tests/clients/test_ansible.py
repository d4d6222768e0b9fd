"""The playbook of deploy/ansible, played by ansible-playbook against the running daemon."""

import json
import os
import re
import subprocess

import pytest

ANSIBLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy", "ansible")


@pytest.fixture
def play(service, tmp_path):
    """Plays site.yml with these variables; what the host's recap counts, and all that was said."""
    token = service.post("/api/v1/tokens", {"name": "ansible", "role": "Operator"}).json()["token"]

    def play(*flags, **variables):
        variables = {"drivewatt_url": service.url, "drivewatt_token": token, **variables}
        command = ["ansible-playbook", "-i", "node,", "-c", "local", "site.yml", *flags]
        env = {
            **os.environ,
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCAL_TEMP": str(tmp_path / "local"),
            "ANSIBLE_REMOTE_TEMP": str(tmp_path / "remote"),
            "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3",
            "LC_ALL": "C.UTF-8",
        }
        done = subprocess.run(
            [*command, "-e", json.dumps(variables)], cwd=ANSIBLE, env=env, capture_output=True, text=True
        )
        output = done.stdout + done.stderr
        assert token not in output
        recap = re.search(r"^node +: (.*)$", output, re.MULTILINE)
        assert recap, output
        return {key: int(n) for key, n in re.findall(r"(\w+)=(\d+)", recap[1])}, output

    return play


def changed(result):
    stats, output = result
    assert stats["failed"] == 0 and stats["unreachable"] == 0, output
    return stats["changed"]


def test_a_second_run_changes_nothing_and_check_mode_neither(service, play):
    first, second = service.drives()
    policy = {"name": "archive", "priority": 3, "selector": {"model": first["model"]}, "desired": {"limit_w": 1000}}
    wanted = {
        "drivewatt_policies": [policy, {"name": "last-year", "absent": True}],
        "drivewatt_desired": [
            {"serial": first["serial"], "power": {"state": 1}},
            {"drive": second["id"], "power": {"state": 2}},
        ],
    }
    gone = {
        "drivewatt_policies": [{"name": "archive", "absent": True}],
        "drivewatt_desired": [{"serial": first["serial"], "absent": True}, {"drive": second["id"], "power": {"state": 0}}],
    }
    policies = service.json("/api/v1/policies")
    assert changed(play("--check", **wanted)) == 3
    assert service.json("/api/v1/policies") == policies
    assert service.get(first["href"] + "/power/desired").status_code == 404
    assert changed(play(**wanted)) == 3
    shown = service.json("/api/v1/policies/archive")
    assert {key: shown[key] for key in policy} == policy
    assert service.json(first["href"] + "/power/desired")["observed_state"] == 1
    assert service.json(second["href"] + "/power/desired")["observed_state"] == 2
    assert changed(play(**wanted)) == 0
    assert changed(play("--check", **gone)) == 3
    assert service.json("/api/v1/policies/archive")["changed_at"] == shown["changed_at"]
    assert changed(play(**gone)) == 3
    assert service.get("/api/v1/policies/archive").status_code == 404
    assert service.get(first["href"] + "/power/desired").status_code == 404
    assert service.json(second["href"] + "/power/desired")["state"] == 0


def test_what_cannot_be_is_told_and_nothing_guessed(service, play):
    stats, output = play(drivewatt_desired=[{"serial": "nobody's", "power": {"state": 1}}])
    assert stats["failed"] == 1 and "0 drives have the serial nobody's" in output
