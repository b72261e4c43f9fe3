from dsportal.cluster import words


def test_what_is_out_of_date_names_whose_answer_is_missing() -> None:
    assert "Slurm is not responding" in words.SLURM_SILENT
    assert "hub is not responding" in words.SESSIONS_OLD
    assert "out of date" in words.SESSIONS_OLD


def test_who_is_turned_away_reads_who_may() -> None:
    assert "admins" in words.ADMINS_ONLY
    assert "cluster page" in words.NOT_ALLOWED
    assert "6 live pages" in words.too_many_streams(6)
