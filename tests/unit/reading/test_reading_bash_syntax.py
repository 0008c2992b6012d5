"""Syntax of bash in a command for `sh`: found where it is, and never in what POSIX has."""

from __future__ import annotations

import pytest

from holdfast.reading.bash_syntax import find_bash_features

POSIX = r"""
serve --port ${PORT:-8080}
serve --port "${PORT:-8080}" --low ${LOW:--1} --dir ${DIR:-/tmp/a}
: ${PORT:=8080} "${HOST=0}"
run ${DEBUG:+-v} ${DEBUG+1}
: "${KEY:?set KEY, or {a,b}}" ${KEY?1}
echo ${file#*/} "${file##*/}" ${#file} ${#}
echo ${file%.*} "${file%%/*}"
echo "${x:-a &> b}" ${y:-"$(cat <"$f")"}
echo ${x:-'} &> a'} "${x#'} &> b'}" "${x:-it's}" ${x:-"it's"}
echo ${@:-none} "${1:-0}" ${?} $$ $!
make >log 2>&1
echo failed >&2
exec 3>&-
echo x >&"$fd"
echo x >&${fd} 2>&"$(pick)" 4>&"3"
[ "$(python -c "print(1 == 1)")" = True ]
[ "$(sh -c "echo \"a == b\"")" = "a == b" ]
curl -d {\"a\":1,\"b\":2} host
curl -d '{"a":1,"b":[2,3]}' host
curl -d "{\"a\":1,\"b\":2}" host
curl -d "$(printf '{"a":%s,"b":2}' "$(id -u)")" host
[ $((a==b)) = 1 ] && echo $((1<<2)) $(( (a < (b)) == c ))
case $x in a|b) echo 1 ;; {*) echo 2 ;; *==*) echo 3 ;; esac
x=$(case $y in (a) echo 1 ;; b) echo 2 ;; esac); echo "$x"
[ a = b ] || test a != b
[ "$x" = == ]
echo please do test a == b
python -c 'x = [1, 2]; print(x == [1, 2], "&>", {1,2})'
echo done # [ a == b ] &> x <<< y
awk '{print $1,$2}' f | sed "s/a$/b/" | grep 'x$'
(cd a; { b; }) && f() { c; }; f & wait
while read -r a; do echo "$a"; done < in > out
git log HEAD@{1}..HEAD@{0} -- {../x}
echo `echo "a == b"` \$\{x\} '$'"'"
cat <<EOF
a &> b <<< c; [ a == b ] {a,b} it's "
EOF
---
cat <<-'END' | sort
	${x:0:1} $'x' `
	END
---
cat <<\EOF >f
x=(a b) "
EOF
---
echo $(cat <<EOF
a ) &> it's
EOF
)
---
if true; then
  echo "a
[ a == b ]"
fi
"""
BASH = [
    ("make &> log", "&>"),
    ("make >& log", ">& FILE"),
    ('make >& "log"', ">& FILE"),
    ("make |& tee log", "|&"),
    ("diff <(a) <(b)", "<( )"),
    ("cat <<< x", "<<<"),
    ('[ "$a" == "b" ]', "[ a == b ]"),
    ("if ! test a == b; then c; fi", "[ a == b ]"),
    ("case x in a) [ a == b ] ;; esac", "[ a == b ]"),
    ("echo ${x:0:1}", "${x:0:1}"),
    ('echo "a ${x: -1} b"', "${x:0:1}"),
    ('echo "${x:$n}" ${@:2}', "${x:0:1}"),
    ("echo ${x/a/b}", "${x:0:1}"),
    ("echo ${y:-${x^^}}", "${x^^}"),
    ("echo ${!x}", "${!x}"),
    ("x=(a b)", "arrays"),
    ('echo "${x[1]}"', "arrays"),
    ("set -euo pipefail; make", "set -o pipefail"),
    ("cp a{,.bak}", "{a,b}"),
    ("echo {1..3}", "{a,b}"),
    ("echo $'a\\'b'", "$'…'"),
    ('echo "$(make &> log)"', "&>"),
    ("echo `make &> log`", "&>"),
    ("x=$(cat <<EOF\n)'\nEOF\n); make &> log", "&>"),
]


def _iter_posix() -> list[str]:
    single, _, rest = POSIX.strip("\n").partition("cat <<EOF")
    return [*single.splitlines(), *f"cat <<EOF{rest}".split("\n---\n")]


@pytest.mark.parametrize("line", _iter_posix())
def test_posix_syntax_is_never_called_bash(line: str) -> None:
    assert find_bash_features(line) == []


@pytest.mark.parametrize(("line", "name"), BASH)
def test_syntax_of_bash_is_found(line: str, name: str) -> None:
    assert find_bash_features(line) == [f"bash's {name}"]
