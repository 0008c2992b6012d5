"""Names, addresses and variables inside a world."""

from __future__ import annotations

from holdfast.model.world import Network, ServiceSpec, WorldSpec
from holdfast.world.service_planes import assign_addresses, build_variables, list_hosts, list_listeners

WORLD = WorldSpec(
    services=(
        ServiceSpec("db", "postgres"),
        ServiceSpec("db2", "postgres"),
        ServiceSpec("stripe-mock", "http_mock", ports=(8080,)),
        ServiceSpec("cache", "redis"),
    ),
    network=Network(dns_overrides={"api.stripe.com": "stripe-mock"}),
)


def test_every_service_has_an_address_of_its_own() -> None:
    found = assign_addresses(WORLD)
    assert len({one.host for one in found}) == 4
    assert [one.ports for one in found] == [(5432,), (5432,), (8080, 80), (6379,)]
    assert all(one.host.startswith("127.0.") and one.host != "127.0.0.1" for one in found)


def test_a_hundred_services_fit() -> None:
    many = WorldSpec(services=tuple(ServiceSpec(f"s{n}", "redis") for n in range(600)))
    assert len({one.host for one in assign_addresses(many)}) == 600


def test_names_resolve_short_long_and_overridden() -> None:
    found = list_hosts(WORLD)
    assert found["db"] == found["db.services.internal"] != found["db2"]
    assert found["api.stripe.com"] == found["stripe-mock"]


def test_an_unresolved_service_has_no_name() -> None:
    found = list_hosts(WORLD, {"stripe-mock"})
    assert not {"stripe-mock", "stripe-mock.services.internal", "api.stripe.com"} & found.keys()


def test_a_mock_listens_plain_and_with_tls() -> None:
    mock = assign_addresses(WORLD)[2]
    assert {(mock.host, 80), (mock.host, 443), (mock.host, 8080)} <= set(list_listeners(WORLD))


def test_the_agent_is_reported_its_services() -> None:
    reached = {"db": ("db", 5432), "db2": ("db2", 5432), "stripe-mock": ("stripe-mock", 80), "cache": ("cache", 6379)}
    said = {
        "db": {"URL": "postgresql://u:p@{host}:{port}/app", "PGHOST": "{host}"},
        "db2": {"URL": "postgresql://{host}:{port}/two"},
        "stripe-mock": {},
        "cache": {"URL": "redis://{host}:{port}/0"},
    }
    found = build_variables(WORLD, reached, said)
    assert found["DB_URL"] == found["DATABASE_URL"] == "postgresql://u:p@db:5432/app"
    assert (found["DB_HOST"], found["DB_PORT"]) == ("db", "5432")
    assert found["STRIPE_MOCK_URL"] == "http://stripe-mock:80"
    assert found["REDIS_URL"] == "redis://cache:6379/0"
    assert found["PGHOST"] == "db"
