"""The trial of a kept world, as its run has it."""

from golden_words import Golden
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.world import Secret, WorldSpec
from holdfast.runner.past.kept_trial import _resolve_secrets, read_trial
from holdfast.world.kept_world import KeptWorld


def test_a_run_that_is_gone_is_reported(tmp_path, golden: Golden):
    told = []
    found = read_trial(KeptWorld("abc", "/spec", {}, {}, run=str(tmp_path / "0007")), {}, told.append)
    assert (found.trial.id, found.spec.world, found.secrets) == ("abc", None, {})
    assert len(told) == 1
    golden(told[0])


def test_secrets_are_asked_for_again_and_a_missing_one_is_reported(tmp_path, monkeypatch, golden: Golden):
    monkeypatch.chdir(tmp_path)
    asked = (Secret("A", "env:OTHER"), Secret("B"), Secret("C", "command:echo from-a-command"))
    spec = Spec(str(tmp_path / "spec.yaml"), AgentSpec("command"), world=WorldSpec(secrets=asked))
    told = []
    environ = {"OTHER": "sesame-sesame", "PATH": "/usr/bin:/bin"}
    assert _resolve_secrets(spec, environ, told.append) == {"A": "sesame-sesame", "C": "from-a-command"}
    golden(told)


def test_a_command_of_a_spec_elsewhere_is_not_run(tmp_path, monkeypatch):
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    spec = Spec(
        str(tmp_path / "spec.yaml"),
        AgentSpec("command"),
        world=WorldSpec(secrets=(Secret("C", f"command:touch {tmp_path}/ran"),)),
    )
    assert _resolve_secrets(spec, {}, lambda text: None) == {}
    assert not (tmp_path / "ran").exists()
