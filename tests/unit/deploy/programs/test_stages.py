"""The stages of a deployment, as `deploy/up` offers them and as site.yml has them."""

import bootstrap
import yaml

SITE = yaml.safe_load((bootstrap.DEPLOY / "ansible/site.yml").read_text())
TAGS = {play["import_playbook"]: set(play["tags"]) for play in SITE}


def test_each_stage_but_the_one_that_changes_nothing_prepares_the_instance() -> None:
    stages = set(bootstrap.STAGES)
    assert TAGS["stages/instance.yml"] == stages - {"validate"}
    assert set.union(*TAGS.values()) == {"always", *stages}
