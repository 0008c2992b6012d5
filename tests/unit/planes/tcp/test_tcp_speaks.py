"""Which protocol a service speaks, and whose names do not resolve."""

import pytest

from holdfast.model.spec import Injection, Scenario
from holdfast.model.world import ServiceSpec
from holdfast.planes.tcp.names import unresolved
from holdfast.planes.tcp.protocol import speaks


@pytest.mark.parametrize(
    ("service", "kind"),
    [
        (ServiceSpec("db", "postgres"), "postgres"),
        (ServiceSpec("db", "external", url="postgresql://there/x"), "postgres"),
        (ServiceSpec("db", "external", url="mysql+pymysql://there/x"), "mysql"),
        (ServiceSpec("db", "external", url="rediss://there"), "redis"),
        (ServiceSpec("db", "external", url="https://there"), "external"),
        (ServiceSpec("db", "http_mock"), "http_mock"),
    ],
)
def test_protocol(service, kind):
    assert speaks(service) == kind


def test_names_that_a_fault_may_keep_from_resolving():
    scenario = Scenario(
        "s",
        (
            Injection("service", "db", "dns_failure"),
            Injection("service", "cache", "down"),
            Injection("http", "*", "dns_failure"),
        ),
    )
    assert unresolved(scenario) == {"db"}
