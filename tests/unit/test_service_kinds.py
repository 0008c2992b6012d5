"""What is known of a service by its kind."""

import pytest

from error_code import has_code
from holdfast import plugins, service_kinds
from holdfast.errors import PluginError
from holdfast.model.world import ServiceSpec


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        ("postgres:16", "postgres"),
        ("docker.io/library/postgres@sha256:00", "postgres"),
        ("registry:5000/postgis/postgis", "postgres"),
        ("mariadb", "mysql"),
        ("valkey:8", "redis"),
        ("postgres-exporter:1", "container"),
        ("kafka:3", "container"),
    ],
)
def test_the_last_word_of_an_image_says_what_it_is(image: str, kind: str) -> None:
    assert service_kinds.find_by_image(image) == kind


@pytest.mark.parametrize(
    ("service", "wire", "variable"),
    [
        (ServiceSpec("db", "postgres"), "postgres", "DATABASE_URL"),
        (ServiceSpec("db", "external", settings={"url": "postgresql://there/x"}), "postgres", "DATABASE_URL"),
        (ServiceSpec("db", "external", settings={"url": "MYSQL+pymysql://there/x"}), "mysql", "DATABASE_URL"),
        (ServiceSpec("db", "external", settings={"url": "rediss://there"}), "", "REDIS_URL"),
        (ServiceSpec("db", "external", settings={"url": "https://there"}), "", ""),
        (ServiceSpec("db", "http_mock"), "", ""),
    ],
)
def test_what_is_elsewhere_is_known_by_its_url(service: ServiceSpec, wire: str, variable: str) -> None:
    found = service_kinds.get_protocol_traits(service)
    assert (found.wire, found.variable) == (wire, variable)


def test_a_service_is_found_at_its_first_port_or_at_the_one_of_its_kind() -> None:
    assert service_kinds.get_port(ServiceSpec("db", "mysql")) == 3306
    assert service_kinds.get_port(ServiceSpec("db", "mysql", ports=(1, 2))) == 1


def test_kinds_without_images_are_asked_for_by_their_type() -> None:
    assert service_kinds.list_types() == ["container", "external", "http_mock"]


def test_settings_that_do_not_fit_are_told_with_the_service() -> None:
    with pytest.raises(PluginError, check=has_code("plugin-broken")):
        service_kinds.build_kind(ServiceSpec("smtp", "http_mock", settings={"routes": [{"path": "/", "status": "x"}]}))


def test_a_kind_nobody_knows_is_an_error() -> None:
    with pytest.raises(PluginError, check=has_code("plugin-broken")):
        service_kinds.get_traits(ServiceSpec("a", "nosuch"))


def test_every_built_in_kind_has_a_scheme_or_an_image_of_its_own() -> None:
    claimed: dict[str, str] = {}
    for name in plugins.list_names("services"):
        kind = service_kinds.find(name)
        assert kind is not None
        for word in (*kind.traits.images, *(f"{scheme}:" for scheme in kind.traits.schemes)):
            assert claimed.setdefault(word, name) == name
