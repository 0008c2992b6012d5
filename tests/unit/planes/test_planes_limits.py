"""What one trial can make us remember is bounded."""

from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.planes.injection.weather import OTHERS, TARGETS_KEPT, Weather


def test_targets_beyond_the_limit_are_counted_together():
    weather = Weather(Trial("0" * 12, "contract", Scenario("calm"), Task(("q",))), print, print)
    for n in range(TARGETS_KEPT + 5):
        weather.find_facing("http", f"http://x/{n}")
        weather.count("http", f"http://x/{n}")
    assert weather.calls[OTHERS] == 5
    assert weather.count("http", "http://x/0") == 2
    assert len(weather.calls) == TARGETS_KEPT + 1
