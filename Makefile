# On Debian 12, all but `check` as root. What each does is in the program it calls.
.PHONY: up down check test test-all mutants bench docs locks release
unexport PYTHONDONTWRITEBYTECODE PYTHONPATH VIRTUAL_ENV
DEV = $$(deploy/venv dev)/bin

up: /usr/bin/python3 ; deploy/up all_in_one
down: /usr/bin/python3 ; deploy/down all_in_one
check: /usr/bin/python3 ; deploy/check
test: check ; deploy/test
test-all: check ; deploy/test --long --machines
mutants: /usr/bin/python3 ; deploy/mutants
bench: /usr/bin/python3 ; for each in session_start spawn_storm slurm_load options_page page_load tensorboard_open cluster_page use_sampling login_failover front recovery session_stop journey hub_idle large_cluster session_extensions first_cell job_start; do PYTHONPATH=deploy $(DEV)/python -m benchmarks.portal.$$each || exit 1; done
docs: /usr/bin/python3
	PYTHONPATH=portal:spawner $(DEV)/python -m dsportal.cli settings reference docs/reference/settings.md
	PYTHONPATH=portal:spawner $(DEV)/python -m dsportal.metrics_reference docs/reference/metrics.md
	$(DEV)/python deploy/roles_reference.py docs/reference/roles.md
	PYTHONPATH=notebook_templates/benchmarks $(DEV)/python -m benchmarks.papers_and_ours docs/reference/papers-and-ours.md
	$(DEV)/zensical build --clean --strict
locks: /usr/bin/python3 ; deploy/lock
release: /usr/bin/python3 ; deploy/release
/usr/bin/python3: ; apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends python3
