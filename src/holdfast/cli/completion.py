"""holdfast completion"""

from __future__ import annotations

import sys

import click


@click.command(name="completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a script that lets TAB complete commands, options, runs, specs, faults, checks and names of your spec.

    \b
      eval "$(holdfast completion bash)"            # in ~/.bashrc
      eval "$(holdfast completion zsh)"             # in ~/.zshrc, after compinit
      holdfast completion fish > ~/.config/fish/completions/holdfast.fish
    """
    from click.shell_completion import ShellComplete, get_completion_class

    from holdfast.cli.main import root

    completion = get_completion_class(shell)
    assert completion is not None  # it is one of the three
    # Not the class's own `source`: that of bash starts a bash to ask for its version.
    sys.stdout.write(ShellComplete.source(completion(root, {}, "holdfast", "_HOLDFAST_COMPLETE")).lstrip("\n"))
