"""Dockerfiles: their instructions, and what of them becomes a place."""

from __future__ import annotations

from pathlib import Path

import pytest

from error_code import has_code
from holdfast.errors import UserError
from holdfast.imports.dockerfile import load_dockerignore, parse_dockerfile
from holdfast.imports.foreign_task import ForeignTask, TaskTests
from holdfast.imports.task_environment import TaskEnvironment, build_environment

TESTS = TaskTests({"test.sh": b""}, "test.sh", "reward", 60.0)


def place(tmp_path: Path, dockerfile: str, **files: str) -> TaskEnvironment:
    """The environment of a task with this Dockerfile and these files beside it."""
    for name, content in files.items():
        path = tmp_path / name.replace("__", "/").replace("_txt", ".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (tmp_path / "Dockerfile").write_text(dockerfile)
    hidden = frozenset({"Dockerfile", "tests"})
    return build_environment(ForeignTask("t", "Harbor", "Do it.", TESTS, tmp_path / "Dockerfile", tmp_path, hidden))


def test_lines_are_joined_and_comments_between_them_are_none() -> None:
    steps = parse_dockerfile('# x\nfrom a:1 AS b\nRUN one \\\n  # why\n  && two\nCMD ["a", "b c"]\n', "Dockerfile")
    assert [(step.name, step.line) for step in steps] == [("FROM", 2), ("RUN", 3), ("CMD", 6)]
    assert steps[1].text.split() == ["one", "&&", "two"]
    assert steps[2].words == ["a", "b c"]


def test_an_empty_line_does_not_end_what_goes_on() -> None:
    steps = parse_dockerfile("FROM a\nRUN one \\\n\n  && two\n\nUSER bob\n", "Dockerfile")
    assert [(step.name, step.text.split()) for step in steps[1:]] == [("RUN", ["one", "&&", "two"]), ("USER", ["bob"])]


@pytest.mark.parametrize(
    ("text", "place", "code"),
    [
        ("RUN x\n", "Dockerfile ", "task-invalid"),
        ("FROM a\nRUN <<EOF\nx\nEOF\n", "Dockerfile:2: ", "task-unsupported"),
        ("FROM a\nCOPY <<'EOF' /x\ny\nEOF\n", "Dockerfile:2: ", "task-unsupported"),
        ("FROM a\nINSTALL x\n", "Dockerfile:2: 'INSTALL'", "task-invalid"),
    ],
)
def test_what_cannot_be_read_names_its_line(text: str, place: str, code: str) -> None:
    with pytest.raises(UserError, match=place) as refused:
        parse_dockerfile(text, "Dockerfile")
    assert refused.value.code == code


def test_a_place_is_made_of_files_variables_and_commands(tmp_path: Path) -> None:
    found = place(
        tmp_path,
        "FROM --platform=linux/amd64 ubuntu:24.04\nWORKDIR /app\nWORKDIR src\nENV A=1 B='two words'\nENV OLD style x\n"
        "COPY data/ ./data/\nCOPY a.txt b.txt /app/src/\nCOPY a.txt renamed.txt\nRUN make all\n",
        data__n_txt="1",
        a_txt="a",
        b_txt="b",
    )
    assert (found.image, found.workdir) == ("ubuntu:24.04", "/app/src")
    assert found.env == {"A": "1", "B": "two words", "OLD": "style x"}
    assert sorted(found.files) == ["a.txt", "b.txt", "data/n.txt", "renamed.txt"]
    assert found.commands == ["make all"]
    assert found.left_out == []


def test_what_has_no_place_is_named(tmp_path: Path) -> None:
    found = place(
        tmp_path,
        "FROM golang AS build\nRUN go build\nFROM $BASE\nARG X=1\nUSER bob\nENV PATH=/x:$PATH\nEXPOSE 80\n"
        "COPY --from=build /x /x\nADD https://example.com/a.tgz /app/\nCOPY . /app\nCOPY a.txt /etc/a.txt\n"
        "RUN apt-get update && apt-get install -y jq tree && echo done > /app/x\nRUN curl -L example.com | sh\n",
        a_txt="a",
        tests__test_txt="secret",
    )
    assert found.image is None
    assert found.packages == ["jq", "tree"]
    assert found.commands == ["echo done > /app/x"]
    assert sorted(found.files) == ["a.txt"]
    assert found.aside == ["EXPOSE 80"]
    told = "\n".join(found.left_out)
    for part in ("no WORKDIR", "before the last: 1", "FROM $BASE", "ARG X=1", "USER bob", "ENV PATH", "--from=build",
                 "https://example.com/a.tgz", "/etc/a.txt is outside /app", "install on this machine: jq, tree",
                 "it needs the network", "tests: the agent must not see it"):  # fmt: skip
        assert part in told


def test_a_file_that_is_not_there_or_lies_outside_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"Dockerfile:2: COPY: .*gone", check=has_code("task-invalid")):
        place(tmp_path, "FROM a\nCOPY gone /app/\n")
    (tmp_path / "link.txt").symlink_to("/etc/hostname")
    with pytest.raises(UserError, match="outside"):
        place(tmp_path, "FROM a\nCOPY link.txt /app/\n")


def test_lines_are_joined_as_docker_joins_them() -> None:
    (_, step) = parse_dockerfile("FROM a\nRUN echo 'one\\n\\\ntwo' && ma\\\nke\n", "Dockerfile")
    assert step.text == "echo 'one\\ntwo' && make"


def test_a_folder_that_copied_files_have_made_may_be_there(tmp_path: Path) -> None:
    found = place(
        tmp_path, "FROM a\nWORKDIR /app\nRUN mkdir data && mkdir -p x\nCOPY n.txt /app/data/n.txt\n", n_txt="1"
    )
    assert found.commands == ["mkdir -p data && mkdir -p x"]


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ("apt-get update", ""),
        ("python /tmp/build/fetch.py --all", "/tmp/build"),
        ("sh /entrypoint.sh", "/entrypoint.sh"),
        ("cp /root/.local/bin/uv /usr/local/bin/uv", "/usr/local/bin/uv"),
        ("/root/.local/bin/uv venv", "the network"),
        ("useradd -m agent", "root"),
        ("chown -R bob /app", "root"),
        ("update-alternatives --install /usr/bin/python3 python3 /usr/bin/python3.11 1", "root"),
        ("locale-gen en_US.UTF-8", "root"),
        ("dpkg-reconfigure tzdata", "root"),
        ("chsh -s /bin/zsh", "root"),
        ("mkdir -p /data/in", "/data/in"),
        ("touch /app/a && chmod +x /usr/local/bin/tool", "/usr/local/bin/tool"),
    ],
)
def test_a_command_that_no_sandbox_can_run_is_named(tmp_path: Path, run: str, why: str) -> None:
    dockerfile = f"FROM a\nWORKDIR /app\nCOPY build/ /tmp/build/\nCOPY e.sh /entrypoint.sh\nRUN {run}\n"
    found = place(tmp_path, dockerfile, build__fetch_txt="1", **{"e.sh": ""})
    assert found.commands == []
    assert [why in one for one in found.left_out if one.startswith("RUN ")] == ([True] if why else [])


@pytest.mark.parametrize("run", ["python /app/make.py > /tmp/log", "mkdir /tmp/x", "chmod +x /app/run.sh", "cp a ./b"])
def test_a_command_inside_the_workspace_stays(tmp_path: Path, run: str) -> None:
    found = place(tmp_path, f"FROM a\nWORKDIR /app\nRUN {run}\n")
    assert [one.replace("mkdir -p", "mkdir") for one in found.commands] == [run]


def test_the_address_of_an_index_is_no_package(tmp_path: Path) -> None:
    run = "pip install torch --index-url https://x.invalid/cpu -r needs.txt && pip3 install -i https://y.invalid jq"
    found = place(tmp_path, f"FROM a\nWORKDIR /app\nRUN {run}\n")
    assert found.packages == ["torch", "needs.txt", "jq"]


# Which files a .dockerignore keeps from an image.


@pytest.mark.parametrize(
    ("lines", "path", "left_out"),
    [
        ("notes", "notes/a/b.txt", True),
        ("/notes/", "notes/a", True),
        ("notes", "other/notes", False),  # Docker's patterns begin at the top, unlike git's
        ("**/notes", "other/notes/a", True),
        ("**/notes", "notes", True),
        ("*.key", "a.key", True),
        ("*.key", "deep/a.key", False),
        ("*/a.key", "deep/a.key", True),
        ("a?.k[e-f]y", "ab.key", True),
        ("a[^b]", "ac", True),
        ("a[^b]", "ab", False),
        ("**", "x/y", True),
        ("*\n!keep.txt", "keep.txt", False),
        ("!keep.txt\n*", "keep.txt", True),
        ("# notes\n\n!", "notes", False),
        (r"a\*b", "axb", False),
        ("a.b", "axb", False),
    ],
)
def test_what_is_left_out(tmp_path: Path, lines: str, path: str, left_out: bool) -> None:
    (tmp_path / ".dockerignore").write_text(lines + "\n")
    assert load_dockerignore(tmp_path, tmp_path / "Dockerfile")(path) is left_out


def test_the_file_of_the_dockerfile_alone_comes_first(tmp_path: Path) -> None:
    (tmp_path / ".dockerignore").write_text("a\n")
    (tmp_path / "Dockerfile.dockerignore").write_text("b\n")
    ignored = load_dockerignore(tmp_path, tmp_path / "Dockerfile")
    assert (ignored("a"), ignored("b")) == (False, True)
    assert not load_dockerignore(tmp_path / "nowhere", None)("a")
    (tmp_path / ".dockerignore").write_text("[z-a]\n")
    with pytest.raises(UserError, check=has_code("task-invalid")):
        load_dockerignore(tmp_path, None)
