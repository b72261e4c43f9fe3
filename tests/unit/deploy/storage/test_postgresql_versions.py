"""What role postgresql says where the hub's database is of another version of PostgreSQL."""

from pathlib import Path

from tests import roles

MADE: dict[str, tuple[str, ...]] = {
    "none": (),
    "same": ("17",),
    "both": ("15", "17"),
    "old": ("15",),
}


def test_no_empty_database_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    """As after an upgrade from Debian 12 to 13."""
    hosts: dict[str, dict[str, object]] = {}
    for name, versions in MADE.items():
        hosts[name] = {"postgresql_folder": f"{tmp_path}/{name}/17"}
        for version in versions:
            (tmp_path / name / version).mkdir(parents=True)
            (tmp_path / name / version / "PG_VERSION").write_text(version)
    given = {"postgresql_version": "17", "postgresql_database": "portal"}
    given_groups = [{"group_by": {"key": "portal"}}]
    validated = {"import_tasks": str(roles.ROLES / "postgresql/tasks/validate.yml")}
    said = roles.refusals(roles.played(tmp_path, hosts, given, [*given_groups, validated]))
    assert list(said) == ["old"], said
    assert f"is in {tmp_path}/old/15, which PostgreSQL 17 cannot" in " ".join(said["old"].split())
