"""The function plane: every reference to a declared function meets the fault, and nothing else changes."""

from __future__ import annotations

import asyncio
import functools
import inspect
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from error_code import has_code
from golden_words import Golden
from holdfast import plugins
from holdfast.errors import HarnessError, InjectedError, UserError
from holdfast.model.observation import FaultMet
from holdfast.model.scenario import Injection
from holdfast.model.spec import AgentSpec, ToolRef
from holdfast.planes import registry
from holdfast.planes.injection.weather import Weather
from holdfast.planes.install import InstalledHooks, install
from holdfast.planes.open_call import activate_weather
from holdfast.protocols.fault import Call, Reply
from plane_weather import Own, fault, weather_of

EVIL = "malicious_response"


class Fixture:
    """A module of tools, wrapped, and calls in weather."""

    def __init__(self) -> None:
        self.module = ModuleType("plane_tools")
        self.installed = InstalledHooks()
        self.ledger: list[FaultMet] = []
        self.broke: list[HarnessError] = []
        self.weather: Weather

    def install(self, *tools: str, registry: str | None = None, llm: tuple[str, ...] = (), **named: str) -> Any:
        refs = [ToolRef(f"plane_tools:{path}") for path in tools]
        refs += [ToolRef(f"plane_tools:{path}", name) for name, path in named.items()]
        where = f"plane_tools:{registry}" if registry else None
        models = tuple(ToolRef(f"plane_tools:{path}") for path in llm)
        self.installed = install(AgentSpec(type="python", tools=tuple(refs), tool_registry=where, llm=models))
        return self.module

    def under(self, *injections: Injection) -> Any:
        self.weather, self.ledger = weather_of(*injections)
        return activate_weather(self.weather, self.broke.append)

    def evil(self, target: str = "*") -> Any:
        return self.under(fault(target, EVIL, payload="evil"))


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fixture]:
    fixture = Fixture()
    monkeypatch.setitem(sys.modules, "plane_tools", fixture.module)
    monkeypatch.setattr(registry, "declared", {})
    yield fixture
    fixture.installed.remove()


def define(tools: Fixture, source: str) -> Any:
    from textwrap import dedent

    exec(compile(dedent(source), "plane_tools.py", "exec"), tools.module.__dict__)
    return tools.module


# -- every reference meets the fault ---------------------------------------------------------------
def test_aliases_partials_closures_and_imports_all_meet_the_fault(tools: Fixture) -> None:
    m = define(tools, "def search(q): return 'real ' + q")
    alias, part, table = m.search, functools.partial(m.search, "x"), {"s": m.search}

    def closed(search: Callable[[str], str] = m.search) -> str:
        return search("x")

    namespace: dict[str, Any] = {}
    exec("from plane_tools import search", namespace)
    tools.install("search")
    assert alias("x") == "real x"
    with tools.evil():
        found = [m.search("x"), alias("x"), part(), table["s"]("x"), closed(), namespace["search"]("x")]
    assert found == ["evil"] * 6
    assert alias("x") == "real x"


@pytest.mark.parametrize(
    ("source", "call", "value"),
    [
        ("def f(a, b=2, *rest, c, d=4, **more): return (a, b, rest, c, d, more)", "f(1, c=3)", (1, 2, (), 3, 4, {})),
        (
            "def f(a, b=2, *rest, c, d=4, **more): return (a, b, rest, c, d, more)",
            "f(1, 5, 6, 7, c=3, d=0, e=9)",
            (1, 5, (6, 7), 3, 0, {"e": 9}),
        ),
        ("def f(a, /, b): return (a, b)", "f(1, b=2)", (1, 2)),
        ("def f(a, /, **a_): return (a, a_)", "f(1, a=2)", (1, {"a": 2})),
        ("def f(*, only): return only", "f(only=3)", 3),
        ("def f(): return 0", "f()", 0),
        ("def o(args, kwargs):\n    def f(x): return (args, kwargs, x)\n    return f\nf = o(1, 2)", "f(3)", (1, 2, 3)),
        ("def outer():\n    def f(): return late\n    late = 5\n    return f\nf = outer()", "f()", 5),
        ("f = lambda x, y=2: x + y", "f(1)", 3),
        ("class A:\n    def g(s): return 1\nclass B(A):\n    def g(s): return super().g() + 1\nf = B().g", "f()", 2),
    ],
)  # fmt: skip
def test_a_wrapped_function_has_the_same_parameters_and_result(
    tools: Fixture, source: str, call: str, value: Any
) -> None:
    m = define(tools, source)
    before = inspect.signature(m.f)
    tools.install("f")
    assert eval(call, m.__dict__) == value
    with tools.under(fault("*", "slow", delay_ms=0)):
        assert eval(call, m.__dict__) == value
    assert inspect.signature(m.f) == before
    assert len(tools.ledger) == 1


def test_an_empty_cell_does_not_break_the_call(tools: Fixture) -> None:
    m = define(
        tools,
        "def outer():\n    def f(): return 'real' if True else later\n    if 0: later = 1\n    return f\nf = outer()",
    )
    tools.install("f")
    with tools.under():
        assert m.f() == "real"


def test_signature_kind_name_and_pickling_are_unchanged(tools: Fixture) -> None:
    m = define(
        tools,
        """
        import functools
        def plain(a: int, b='x', *, c=None) -> str: 'the doc'; return a
        async def later(a): return a
        def pieces(a): yield a
        async def late_pieces(a): yield a
        """,
    )
    names = ("plain", "later", "pieces", "late_pieces")
    for name in names:
        getattr(m, name).__module__ = "plane_tools"

    def facts(f: Any) -> Any:
        code = f.__code__
        kinds = (inspect.iscoroutinefunction(f), inspect.isgeneratorfunction(f), inspect.isasyncgenfunction(f))
        names = (f.__name__, f.__qualname__, f.__doc__, f.__defaults__, f.__kwdefaults__, f.__annotations__)
        place = (code.co_argcount, code.co_kwonlyargcount, code.co_filename, code.co_firstlineno, code.co_name)
        return inspect.signature(f), inspect.getfullargspec(f), kinds, names, place

    before = {name: facts(getattr(m, name)) for name in names}
    tools.install(*names)
    assert {name: facts(getattr(m, name)) for name in names} == before
    assert pickle.loads(pickle.dumps(m.plain)) is m.plain


def test_a_wrong_call_fails_as_it_would_have(tools: Fixture) -> None:
    m = define(tools, "def search(q): return q")
    tools.install("search")
    with tools.evil(), pytest.raises(TypeError, match="'q'"):
        m.search()


def test_a_bound_method_is_wrapped_only_for_its_instance(tools: Fixture) -> None:
    m = define(tools, "class Api:\n    def get(self, q): return 'real'\none, two = Api(), Api()")
    tools.install("one.get")
    with tools.evil():
        assert (m.one.get("x"), m.two.get("x"), m.Api().get("x")) == ("evil", "real", "real")
    assert tools.weather.calls == {"get": 1}


def test_two_instances_of_one_class_are_two_tools(tools: Fixture) -> None:
    m = define(
        tools,
        """
        class Tool:
            def __init__(self, name): self.name = name
            def invoke(self, q): return 'real'
        one, two = Tool('one'), Tool('two')
        """,
    )
    tools.install("one", "two")
    with tools.evil("two"):
        assert (m.one.invoke("x"), m.two.invoke("x")) == ("real", "evil")
    assert tools.weather.calls == {"one": 1, "two": 1}


def test_class_and_static_methods_and_methods_of_a_class(tools: Fixture) -> None:
    m = define(
        tools,
        """
        class Api:
            @classmethod
            def make(cls, q): return 'real'
            @staticmethod
            def help(q): return 'real'
            def get(self, q): return 'real'
        class Sub(Api): pass
        """,
    )
    tools.install("Api.make", "Api.help", "Api.get")
    with tools.under(fault("*", EVIL, payload="evil", match={"q": "x"})):
        found = [
            m.Api.make("x"),
            m.Sub.make("x"),
            m.Api.help("x"),
            m.Api().help("x"),
            m.Api().get("x"),
            m.Sub().get("x"),
        ]
    assert found == ["evil"] * 6


def test_a_callable_object_is_wrapped_for_itself(tools: Fixture) -> None:
    m = define(tools, "class Search:\n    def __call__(self, q): return 'real'\nsearch, other = Search(), Search()")
    tools.install("search")
    with tools.evil():
        assert (m.search("x"), m.other("x")) == ("evil", "real")


LANGCHAIN = """
import asyncio
class Tool:
    def __init__(self, name, func=None, coroutine=None): self.name, self.func, self.coroutine = name, func, coroutine
    def invoke(self, given): return self.func(**given)
    async def ainvoke(self, given):
        return await self.coroutine(**given) if self.coroutine else await asyncio.to_thread(self.func, **given)
class Sub:
    name = 'sub'
    def invoke(self, given): return self._run(**given)
    def _run(self, q): return 'real'
    async def _arun(self, q): return self._run(q)
    async def ainvoke(self, given): return await self._arun(**given)
class Store:
    def find(self, q): return 'real'
def search(q): return 'real'
async def asearch(q): return search(q)
tool, sub, store = Tool('lookup', search, asearch), Sub(), Store()
bound = Tool('bound', store.find)
"""


def test_tool_objects_are_wrapped_at_their_innermost_method(tools: Fixture) -> None:
    m = define(tools, LANGCHAIN)
    tools.install("tool", "sub", "bound")
    assert tools.installed.tools == ["lookup", "sub", "bound"]
    given = {"q": "x"}

    async def ask() -> list[str]:
        return [await m.tool.ainvoke(given), await m.sub.ainvoke(given), await m.bound.ainvoke(given)]

    with tools.evil():
        assert [m.tool.invoke(given), m.sub.invoke(given), m.bound.invoke(given)] == ["evil"] * 3
        assert asyncio.run(ask()) == ["evil"] * 3
    assert tools.weather.calls == {"lookup": 2, "sub": 2, "bound": 2}


def test_a_tool_that_calls_itself_is_one_call_of_the_agents(tools: Fixture) -> None:
    m = define(tools, LANGCHAIN + "\ndef fact(n): return 1 if n < 2 else n * fact(n - 1)")
    tools.install("tool", "sub", "fact")
    with tools.under():
        assert asyncio.run(m.tool.ainvoke({"q": "x"})) == "real"
        assert asyncio.run(m.sub.ainvoke({"q": "x"})) == "real"
        assert m.fact(5) == 120
    assert tools.weather.calls == {"lookup": 1, "sub": 1, "fact": 1}
    assert not tools.weather.concurrent


def test_a_decorated_function_is_wrapped_and_its_arguments_keep_their_names(tools: Fixture) -> None:
    m = define(
        tools,
        """
        import functools
        def logged(f):
            @functools.wraps(f)
            def wrapper(*args, **kwargs): return f(*args, **kwargs)
            return wrapper
        @logged
        def search(q, limit=10): return 'real'
        """,
    )
    tools.install("search")
    with tools.under(fault("search", EVIL, payload="evil", match={"q": "a*", "limit": 10})):
        assert (m.search("abc"), m.search("abc", limit=10), m.search("b"), m.search("abc", 3)) == (
            "evil", "evil", "real", "real",
        )  # fmt: skip


DECORATED_ASYNC = """
import asyncio, functools
def kept_async(f):
    @functools.wraps(f)
    def wrapper(*args): return f(*args)
    return wrapper
def made_sync(f):
    @functools.wraps(f)
    def wrapper(*args): return asyncio.run(f(*args))
    return wrapper
@kept_async
async def search(q): return 'real'
@made_sync
async def fetch(q): return 'real'
"""


@pytest.mark.parametrize("mode", [EVIL, "malformed"])
def test_a_plain_wrapper_of_a_coroutine_function_stays_what_it_was(tools: Fixture, mode: str) -> None:
    m = define(tools, DECORATED_ASYNC)
    tools.install("search", "fetch")

    async def ask() -> Any:
        return await m.search("x")

    with tools.under(fault("*", mode)):
        assert asyncio.run(ask()) != "real"
        assert m.fetch("x") not in ("real", None)
    assert [met.effect for met in tools.ledger] == ["met", "met"]


def test_a_plain_function_that_gives_an_awaitable_is_a_harness_error(tools: Fixture, golden: Golden) -> None:
    m = define(tools, "async def a(): return 1\nsearch = lambda: a()")
    tools.install("search")
    with tools.under(fault("search", "malformed")), pytest.raises(HarnessError):
        m.search()
    (broke,) = tools.broke
    golden(str(broke))


# -- names -------------------------------------------------------------------------------------------
def test_a_name_is_the_key_the_name_or_the_functions_name(tools: Fixture) -> None:
    define(
        tools,
        """
        def search(): pass
        def marked(): pass
        marked.name = 'by_attribute'
        class Tool:
            name = 'by_name'
            def __call__(self): pass
        tool, anonymous, given = Tool(), lambda: 1, lambda: 2
        def listed(): pass
        table = {'by_key': listed}
        """,
    )
    tools.install("search", "marked", "tool", "anonymous", registry="table", own="given")
    assert tools.installed.tools == ["search", "by_attribute", "by_name", "anonymous", "own", "by_key"]


def test_lambdas_and_registries(tools: Fixture) -> None:
    m = define(
        tools, "from holdfast import ToolRegistry\ntable = ToolRegistry({'a': lambda: 'real', 'b': lambda: 'real'})"
    )
    tools.install(registry="table")
    with tools.evil("b"):
        assert (m.table["a"](), m.table["b"]()) == ("real", "evil")


def test_the_decorator_declares_a_tool(tools: Fixture) -> None:
    m = define(tools, "import holdfast\n@holdfast.tool(name='lookup')\ndef search(): return 'real'")
    tools.install()
    with tools.evil("lookup"):
        assert m.search() == "evil"


def test_the_decorator_refuses_a_name_twice(tools: Fixture) -> None:
    with pytest.raises(UserError) as raised:
        define(tools, "import holdfast\n@holdfast.tool\ndef search(): pass\nholdfast.tool(name='search')(print)")
    assert raised.value.code == "tool-unusable"


def test_a_function_declared_in_two_ways_is_wrapped_once(tools: Fixture) -> None:
    m = define(tools, "import holdfast\n@holdfast.tool\ndef search(): return 'real'\ntable = {'search': search}")
    tools.install("search", registry="table")
    with tools.under(fault("search", "slow", delay_ms=0)):
        m.search()
    assert len(tools.ledger) == 1
    assert tools.installed.tools == ["search"]


@pytest.mark.parametrize(
    ("source", "names", "why"),
    [
        ("def a(): pass\ntable = {'b': a}", ["a"], "'b' and 'a' are the same function"),
        (
            "def a(): pass\nclass T:\n    def __init__(s, f): s.func = f\ntable = {'b': T(a)}",
            ["a"],
            "the same function",
        ),
        ("def a(): pass\ndef b(): pass\ntable = {'a': b}", ["a"], "two different tool functions are called 'a'"),
        ("table = {'a': 5}", [], "'a' is of type int, which cannot be a tool"),
        ("class A: pass\ntable = {'a': A}", [], "'a' is the class A, which cannot be a tool"),
        ("table = [print]", [], "is a list, not a mapping of name to callable"),
        ("import types\ntable = {}\n@types.coroutine\ndef a(): yield", ["a"], "a coroutine made of a generator"),
    ],
)
def test_ambiguous_or_uncallable_tools_are_rejected(tools: Fixture, source: str, names: list[str], why: str) -> None:
    m = define(tools, source)
    codes = {name: value.__code__ for name, value in vars(m).items() if inspect.isfunction(value)}
    with pytest.raises(UserError, match=why):
        tools.install(*names, registry="table")
    assert {name: getattr(m, name).__code__ for name in codes} == codes  # nothing stays half done


def test_a_path_that_is_not_there_names_the_near_miss(tools: Fixture) -> None:
    define(tools, "def search(): pass")
    with pytest.raises(UserError) as caught:
        tools.install("serach")
    assert caught.value.hint == "did you mean search?"


# -- callables whose code cannot be exchanged ------------------------------------------------------
CACHED = """
import functools
@functools.lru_cache
def search(q): return 'real'
table = {'search': search}
"""


def test_a_cached_function_is_replaced_at_its_name_and_in_the_registry(tools: Fixture) -> None:
    m = define(tools, CACHED)
    original = m.search
    del original
    tools.install("search", registry="table")
    with tools.evil():
        assert (m.search("x"), m.table["search"]("x")) == ("evil", "evil")
    assert m.search("x") == "real"
    assert m.search.cache_info().misses == 1
    assert str(inspect.signature(m.search)) == "(q)"
    m.search.cache_clear()
    m.search.__module__ = "plane_tools"
    assert pickle.loads(pickle.dumps(m.search)) is m.search


def test_everything_is_put_back(tools: Fixture) -> None:
    m = define(tools, CACHED + "\ndef plain(): return 'real'")
    cached, code = id(m.search), m.plain.__code__
    tools.install("search", "plain", registry="table")
    tools.installed.remove()
    assert (id(m.search), id(m.table["search"])) == (cached, cached)
    assert m.plain.__code__ is code


@pytest.mark.parametrize(
    ("holder", "where"),
    [
        ("alias = search", r"module plane_tools \(alias\)"),
        ("class Agent:\n    tool = staticmethod(search)", "a staticmethod"),
        ("class Agent:\n    tool = search", r"class Agent \(tool\)"),
        ("class Agent:\n    def __init__(self): self.tool = search\nagent = Agent()", "a Agent"),
        ("class Agent:\n    __slots__ = ('tool',)\nagent = Agent(); agent.tool = search", "a Agent"),
        ("def ask(p, tool=search): return tool(p)", "a tuple"),
        ("def outer(tool):\n    return lambda: tool()\nask = outer(search)", "a closure"),
        ("part = functools.partial(search, 1)", "a partial"),
        ("tools = [search]", "a list"),
    ],
)
def test_a_stray_reference_is_an_error_that_names_where(tools: Fixture, holder: str, where: str) -> None:
    m = define(tools, f"{CACHED}\n{holder}")
    before = id(m.search)
    with pytest.raises(UserError, match=f"_lru_cache_wrapper .*{where}", check=has_code("tool-unusable")):
        tools.install("search", registry="table")
    assert id(m.search) == before


def test_a_partial_of_a_coroutine_function_stays_one(tools: Fixture) -> None:
    m = define(
        tools, "import functools\nasync def get(base, q): return 'real'\ntable = {'get': functools.partial(get, 'b')}"
    )
    tools.install(registry="table")
    assert inspect.iscoroutinefunction(m.table["get"])
    with tools.evil():
        assert asyncio.run(m.table["get"]("x")) == "evil"


def test_a_builtin_is_replaced_in_the_registry(tools: Fixture) -> None:
    m = define(tools, "table = {'up': 'abc'.upper}")
    tools.install(registry="table")
    with tools.evil():
        assert m.table["up"]() == "evil"
    assert m.table["up"]() == "ABC"


def test_a_read_only_registry_is_rejected_only_if_it_must_change(tools: Fixture) -> None:
    m = define(
        tools,
        """
        from types import MappingProxyType
        plain = MappingProxyType({'f': lambda: 'real'})
        fixed = MappingProxyType({'f': 'abc'.upper})
        """,
    )
    tools.install(registry="plain")
    with tools.evil():
        assert m.plain["f"]() == "evil"
    with pytest.raises(UserError) as raised:
        tools.install(registry="fixed")
    assert raised.value.code == "tool-unusable"


# -- kinds of functions ----------------------------------------------------------------------------
def test_coroutine_functions_wait_without_blocking(tools: Fixture) -> None:
    m = define(tools, "order = []\nasync def search(q): order.append(q); return 'real'")
    tools.install("search")

    async def go_on() -> None:
        m.order.append("something else")

    async def ask() -> Any:
        return await asyncio.gather(m.search("a"), m.search("b"), go_on())

    with tools.under(fault("search", "slow", delay_ms=60)):
        assert asyncio.run(ask()) == ["real", "real", None]
    assert m.order == ["something else", "a", "b"]
    assert tools.weather.concurrent


def test_generators_are_one_reply(tools: Fixture) -> None:
    m = define(tools, "def pieces(n): yield from range(n)\nasync def late(n):\n    for i in range(n): yield i")
    tools.install("pieces", "late")

    async def collect() -> list[Any]:
        return [item async for item in m.late(3)]

    with tools.under():
        assert list(m.pieces(3)) == asyncio.run(collect()) == [0, 1, 2]
    with tools.evil():
        assert list(m.pieces(3)) == asyncio.run(collect()) == ["evil"]
    assert [met.call for met in tools.ledger] == [1, 1]
    with tools.under(fault("*", "empty")):
        assert list(m.pieces(3)) == asyncio.run(collect()) == []


def test_a_generator_in_calm_can_be_sent_to(tools: Fixture) -> None:
    m = define(tools, "def echo():\n    got = yield 'ready'\n    yield got")
    tools.install("echo")
    with tools.under():
        running = m.echo()
        assert (next(running), running.send("hi")) == ("ready", "hi")


# -- what the agent feels --------------------------------------------------------------------------
def test_failures_are_timeout_error_and_injected_error(tools: Fixture) -> None:
    m = define(tools, "def search(): pass")
    tools.install("search")
    with tools.under(fault("search", "timeout", delay_ms=1)), pytest.raises(TimeoutError):
        m.search()
    with tools.under(fault("search", "rate_limit", retry_after_s=3)), pytest.raises(InjectedError) as caught:
        m.search()
    assert (caught.value.status_code, caught.value.retry_after) == (429, 3)
    assert isinstance(caught.value, RuntimeError)
    # A client whose connection breaks raises ConnectionError, and agents retry on it: so must they here.
    with tools.under(fault("search", "lost_reply")), pytest.raises(ConnectionError) as lost:
        m.search()
    assert isinstance(lost.value, InjectedError)


class Busy(Exception):
    class Very(Exception):
        pass


@pytest.mark.parametrize(
    ("path", "kind"),
    [("builtins:ConnectionError", ConnectionError), (f"{__name__}:Busy", Busy), (f"{__name__}:Busy.Very", Busy.Very)],
)
def test_raises_names_the_class(tools: Fixture, path: str, kind: type[Exception]) -> None:
    m = define(tools, "def search(): pass")
    tools.install("search")
    for mode in ("error", "timeout"):
        settings = {"delay_ms": 1} if mode == "timeout" else {"message": "down"}
        with tools.under(fault("search", mode, raises=path, **settings)), pytest.raises(kind):
            m.search()


def test_each_fault_of_a_chain_raises_its_own_class(tools: Fixture) -> None:
    m = define(tools, "def search(): pass")
    tools.install("search")
    chain = (
        fault("search", "slow", delay_ms=1, raises="builtins:KeyError"),
        fault("search", "error", raises="builtins:OSError"),
    )
    with tools.under(*chain), pytest.raises(OSError, match=r"503|unavailable|search"):
        m.search()


@pytest.mark.parametrize(
    "raised", ["LookupError('mine')", "StopIteration('mine')", "KeyboardInterrupt()", "SystemExit(3)"]
)
@pytest.mark.parametrize("injections", [(), (fault("search", "malformed"),)])
def test_a_tools_own_exception_passes_untouched(tools: Fixture, raised: str, injections: Any) -> None:
    m = define(tools, f"mine = {raised}\ndef search(): raise mine")
    tools.install("search")
    with tools.under(*injections), pytest.raises(type(m.mine)) as caught:
        m.search()
    assert caught.value is m.mine
    assert tools.broke == []


async def sleeps(call: Call, forward: Any, ctx: Any) -> Reply:
    await asyncio.sleep(0)
    return Reply(1)


async def sleeps_long(call: Call, forward: Any, ctx: Any) -> Reply:
    await asyncio.sleep(30)
    return Reply(1)


async def breaks(call: Call, forward: Any, ctx: Any) -> Reply:
    raise KeyError("bug")


@pytest.mark.parametrize("inside_a_loop", [False, True])
@pytest.mark.parametrize("act", [sleeps, sleeps_long, breaks])
def test_a_broken_plug_in_is_reported_even_if_the_agent_swallows_its_error(
    tools: Fixture, act: Any, inside_a_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = plugins.find
    monkeypatch.setattr(Own, "act", staticmethod(act))
    monkeypatch.setattr(plugins, "find", lambda family, name: Own if name == "own" else real(family, name))
    m = define(tools, "def search(): return 1")
    tools.install("search")

    async def ask() -> str:
        try:
            m.search()
        except Exception:
            return "went on"
        return "nothing"

    with tools.under(Injection("tool", "search", "own")):
        if inside_a_loop:
            assert asyncio.run(ask()) == "went on"
        else:
            with pytest.raises(StopIteration, match="went on"):
                ask().send(None)
    assert [broke.code for broke in tools.broke] == ["fault-broken"]


# -- threads, overlap, calm ------------------------------------------------------------------------
def test_threads_of_the_agents_own_meet_the_weather_and_are_counted_right(tools: Fixture) -> None:
    m = define(tools, "def search(q): return 'real'")
    tools.install("search")
    found: list[str] = []

    def work() -> None:
        for n in range(200):
            found.append(m.search(n))

    with tools.under(fault("search", EVIL, payload="evil", times=300)):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (found.count("evil"), found.count("real")) == (300, 500)
    assert len(tools.ledger) == 300
    assert tools.weather.calls == {"search": 800}
    assert not tools.weather.in_flight


def test_calls_that_overlap_are_marked_and_others_are_not(tools: Fixture) -> None:
    m = define(tools, "import time\ndef search(q): time.sleep(0.05)\ndef outer(): search(1); search(2)")
    tools.install("search", "outer")
    with tools.under():
        m.outer()
        m.search(1)
        assert not tools.weather.concurrent
        thread = threading.Thread(target=m.search, args=(1,))
        thread.start()
        time.sleep(0.01)
        m.search(2)
        thread.join()
    assert tools.weather.concurrent


def test_tools_and_models_are_planes_of_their_own(tools: Fixture) -> None:
    m = define(tools, "def search(): return 'real'\ndef chat(): return 'real'")
    tools.install("search", llm=("chat",))
    with tools.under(fault("*", "empty", plane="llm")):
        assert (m.search(), m.chat()) == ("real", "")
    assert tools.weather.calls == {"search": 1, "llm:chat": 1}


def test_outside_a_trial_nothing_is_counted(tools: Fixture) -> None:
    m = define(tools, "def search(): return 'real'")
    tools.install("search")
    with tools.evil():
        pass
    assert m.search() == "real"
    assert tools.ledger == []
