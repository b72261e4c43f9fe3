"""The stages of a deployment, as `deploy/up` offers them and as site.yml has them."""

import re

import bootstrap
import yaml

ANSIBLE = bootstrap.DEPLOY / "ansible"
SITE = yaml.safe_load((ANSIBLE / "site.yml").read_text())
TAGS = {play["import_playbook"]: set(play["tags"]) for play in SITE}


def test_each_stage_but_the_one_that_changes_nothing_prepares_the_instance() -> None:
    stages = set(bootstrap.STAGES)
    assert TAGS["stages/instance.yml"] == stages - {"validate"}
    assert set.union(*TAGS.values()) == {"always", *stages}


def test_each_stage_that_changes_what_the_doctor_expects_tells_it() -> None:
    roles = {path.parents[1].name for path in (ANSIBLE / "roles").glob("*/tasks/doctor.yml")}
    expecting = set()
    for stage in set(bootstrap.STAGES) - {"validate", "verify"}:
        play = (ANSIBLE / f"stages/{stage}.yml").read_text()
        if roles & set(re.findall(r"(?:role|name): (\w+)$", play, re.M)):
            expecting.add(stage)
    assert expecting == {"filesystems", "slurm", "portal"}
    # Which has the service that looks.
    assert TAGS["stages/doctor.yml"] == expecting | {"monitoring"}
