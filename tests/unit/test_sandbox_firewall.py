"""Packet filter rules as text; that they hold is tested on real hosts in tests/deploy."""

from ipaddress import IPv4Network

from blackwell.sandbox import firewall


def chain(text, name):
    """The rules of one chain of an nft input, in order."""
    lines = text.split(f"chain {name} {{")[1].split("}")[0].splitlines()
    return [line.strip() for line in lines if line.strip()]


RULES = firewall.sandbox_rules("bwsbx1", IPv4Network("10.213.0.0/24"))


def test_into_the_bridge_come_answers_only():
    inward = [rule for rule in chain(RULES, "forward") if rule.startswith('oifname "bwsbx1"')]
    assert inward == ['oifname "bwsbx1" ct state established,related accept', 'oifname "bwsbx1" drop']


def test_out_of_the_bridge_go_only_the_sandboxs_own_addresses():
    outward = [rule for rule in chain(RULES, "forward") if rule.startswith('iifname "bwsbx1"')]
    assert outward == [
        'iifname "bwsbx1" oifname "bwsbx1" accept',
        'iifname "bwsbx1" ip saddr 10.213.0.0/24 accept',
        'iifname "bwsbx1" drop',
    ]


def test_addresses_are_translated_on_the_way_out_but_not_between_hosts():
    assert 'ip saddr 10.213.0.0/24 oifname != "bwsbx1" masquerade' in chain(RULES, "postrouting")


def test_the_guard_drops_what_is_no_sandboxs():
    hook, *rules = chain(firewall.guard_rules(), "forward")
    assert "hook forward" in hook
    assert rules == ['iifname "bwsbx*" accept', 'oifname "bwsbx*" accept', "drop"]


def test_putting_rules_in_place_again_replaces_them():
    assert RULES.startswith("table inet bwsbx1\ndelete table inet bwsbx1\ntable inet bwsbx1 {")


def test_tables_that_drop_forwarded_packets_by_default_are_found():
    listing = {
        "nftables": [
            {"metainfo": {}},
            {"chain": {"family": "ip", "table": "filter", "hook": "forward", "policy": "drop"}},
            {"chain": {"family": "ip", "table": "filter", "hook": "input", "policy": "drop"}},
            {"chain": {"family": "inet", "table": "bwsbx1", "hook": "forward", "policy": "accept"}},
            {"chain": {"family": "ip", "table": "nat"}},
        ]
    }
    assert firewall.dropping(listing) == ["ip filter"]
