"""What the firewall's rules and their unit say, beside what tests of real packets see."""

import bootstrap
import jinja2

ROLE = bootstrap.DEPLOY / "ansible/roles/firewall"


def rendered(template: str) -> list[str]:
    """Render a template for a host of no group."""
    environment = jinja2.Environment(autoescape=False, undefined=jinja2.ChainableUndefined)  # noqa: S701
    text = (ROLE / "templates" / template).read_text()
    given = {"firewall_sets": {}, "firewall_ssh_ports": [22], "firewall_exporter_ports": [9100]}
    lines = environment.from_string(text).render(
        **given, group_names=[], firewall_extra_rules=[], firewall_file="/etc/portal.nft"
    )
    return [line.strip() for line in lines.splitlines()]


def test_a_reload_of_the_distributions_rules_brings_the_portals_back() -> None:
    """/etc/nftables.conf begins with "flush ruleset"; PartOf is for stop and restart only."""
    unit = rendered("firewall.service.j2")
    assert "ReloadPropagatedFrom=nftables.service" in unit
    assert "ExecReload=/usr/sbin/nft --file /etc/portal.nft" in unit


def test_a_lease_of_an_ipv6_address_can_be_renewed() -> None:
    """The answer comes from one server, and the question went to all: it is not "established"."""
    rules = rendered("firewall.nft.j2")
    assert "ip6 saddr fe80::/10 udp sport 547 udp dport 546 accept" in rules
