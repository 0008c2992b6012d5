"""`holdfast shell`: the trial of a kept world, as its run has it."""

from golden_words import Golden
from holdfast.cli.leftovers import _read_trial, _resolve_secrets
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.world import Secret, WorldSpec
from holdfast.world.kept_world import KeptWorld


def test_a_run_that_is_gone_is_reported(tmp_path, capsys, golden: Golden):
    stored = _read_trial(KeptWorld("abc", "/spec", {}, {}, run=str(tmp_path / "0007")))
    assert (stored.trial.id, stored.spec.world, stored.secrets) == ("abc", None, {})
    (line,) = capsys.readouterr().err.splitlines()
    golden(line)


def test_secrets_are_resolved_again_and_a_missing_one_is_reported(tmp_path, monkeypatch, capsys, golden: Golden):
    monkeypatch.chdir(tmp_path)
    secrets = (Secret("A", "env:OTHER"), Secret("B"), Secret("C", "command:echo from-a-command"))
    spec = Spec(str(tmp_path / "spec.yaml"), AgentSpec("command"), world=WorldSpec(secrets=secrets))
    monkeypatch.setenv("OTHER", "sesame-sesame")
    monkeypatch.delenv("B", raising=False)
    assert _resolve_secrets(spec) == {"A": "sesame-sesame", "C": "from-a-command"}
    golden(capsys.readouterr().err.splitlines())


def test_a_command_of_a_spec_elsewhere_is_not_run(tmp_path, monkeypatch):
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    spec = Spec(
        str(tmp_path / "spec.yaml"),
        AgentSpec("command"),
        world=WorldSpec(secrets=(Secret("C", f"command:touch {tmp_path}/ran"),)),
    )
    assert _resolve_secrets(spec) == {}
    assert not (tmp_path / "ran").exists()
