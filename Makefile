# As root on Debian 12. What each does is in the program it calls.
.PHONY: up down test test-fresh lint bench docs locks
unexport PYTHONDONTWRITEBYTECODE PYTHONPATH VIRTUAL_ENV
DEV = $$(deploy/venv dev)/bin

up: /usr/bin/python3 ; deploy/up all_in_one
down: /usr/bin/python3 ; deploy/down all_in_one
test: /usr/bin/python3 ; deploy/test
test-fresh: /usr/bin/python3 ; $(DEV)/python -m pytest tests/machine
lint: /usr/bin/python3 ; deploy/lint
bench: /usr/bin/python3 ; for each in session_start spawn_storm slurm_load options_page page_load tensorboard_open cluster_page use_sampling login_failover; do $(DEV)/python -m benchmarks.portal.$$each || exit 1; done
docs: /usr/bin/python3
	$(DEV)/python -m portal.cli settings reference docs/reference/settings.md
	$(DEV)/python -m portal.metrics_reference docs/reference/metrics.md
	$(DEV)/python deploy/roles_reference.py docs/reference/roles.md
locks: /usr/bin/python3 ; deploy/lock
/usr/bin/python3: ; apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends python3
