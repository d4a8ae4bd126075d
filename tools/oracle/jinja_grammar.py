"""Templates at random: expressions and statements of the kind chat templates are made of, mostly of matching types.

A case is made from its number alone, so that one that fails can be made again.
"""

import json
import random

VARIABLES = {
    "i": 7, "j": -3, "zero": 0, "big": 4611686018427387904, "f": 2.5, "g": -0.125, "h": 1e16, "tiny": 1.5e-7,
    "s": "Hello World", "t": "  padded\n text \t", "empty": "", "u": "Grüße, Ωμέγα ΣΑΣ – straße ﬁ", "emoji": "a😀b👩‍🔬",
    "lines": "one\ntwo\r\nthree\n\nfour\u2028five", "html": "<b>\"it's\" & more</b>", "csv": "a,b,,c", "num": "42",
    "dec": " 3.75 ", "bad": "4x", "think": "<think>\nx\n</think>\n\ny",
    "yes": True, "no": False, "nothing": None,
    "list": [3, 1, 2], "strs": ["b", "A", "c", "a"], "mixed": [1, "a", None, True, 2.5, [1], {"k": 1}],
    "nested": [[1, 2], [3], []], "el": [], "pairs": [["x", 1], ["y", 2]], "floats": [0.5, 2.0, -1.25],
    "bools": [True, False, True], "dup": ["a", "b", "A", "a", "c", "b"],
    "d": {"a": 1, "b": "two", "c": [1, 2], "items": "shadowed", "Z": None}, "ed": {},
    "people": [
        {"name": "Bo", "age": 30, "tags": ["x"], "city": {"name": "Ulm"}},
        {"name": "al", "age": 25, "tags": [], "city": {"name": "bonn"}},
        {"name": "Cy", "age": 30, "city": {"name": "Ulm"}, "extra": None},
    ],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image", "url": "x"}]},
        {"role": "assistant", "content": "", "tool_calls": [
            {"function": {"name": "f", "arguments": {"q": "ä\"\\/\n", "n": 1.0, "deep": {"x": [True, None]}}}}]},
        {"role": "tool", "content": "42"},
    ],
}
VARIABLES_JSON = json.dumps(VARIABLES)

INTS = ("i", "j", "zero", "big")
FLOATS = ("f", "g", "h", "tiny")
STRINGS = (
    "s", "t", "empty", "u", "emoji", "lines", "html", "csv", "num", "dec", "bad", "think")
LISTS = ("list", "strs", "mixed", "nested", "el", "pairs", "floats", "bools", "dup", "people", "messages")
DICTS = ("d", "ed", "messages[0]", "people[1]", "people[0].city")
OTHERS = ("yes", "no", "nothing", "missing", "d.nothere", "people[9]", "s.nope")
LITERALS = (
    "''", "'a'", "'l'", "'o W'", "\"it's\"", "'\\n'", "'ß'", "' '", "','", "'A'", "'\\t'", "'%s'", "'{}'",
    "'\\u00e9'", "'\\x41'", "'</think>'", "'ab' 'cd'")
PATHS = ("'name'", "'age'", "'city.name'", "'tags'", "'tags.0'", "'extra'", "0", "'none'", "'name,age'")
TESTS = (
    "defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "iterable",
    "sequence", "true", "false", "odd", "even", "callable", "lower", "upper", "escaped", "filter", "test",
    "divisibleby(3)", "divisibleby 2", "sameas none", "sameas(true)", "in [1, 2]", "in 'abc'", "eq 1", "ne(2)",
    "lt 3", "gt(0)", "ge 2", "le 2", "equalto 'a'", "greaterthan 1", "lessthan 5")
TEXT_FILTERS = (
    "upper", "lower", "title", "capitalize", "trim", "trim('Hd')", "trim(chars=' ')", "length", "count", "list",
    "first", "last", "reverse", "string", "int", "int(-1)", "int(0, 16)", "float", "float(1)", "replace('l', 'L')",
    "replace('o', '0', 1)", "replace('', '-')", "indent", "indent(2, true)", "indent('> ', first=true, blank=true)",
    "wordcount", "center(20)", "truncate(8)", "truncate(5, true, '')", "truncate(7, false, '…', 0)", "urlencode", "e",
    "escape", "forceescape", "safe", "tojson", "default('x')", "d('x', true)", "join('-')", "sort|join", "unique|join",
    "batch(3)|list", "select('ne', 'l')|join", "map('upper')|join('.')", "attr('upper')|string|length > 0",
    "format", "min", "max", "list|length", "items|list")
LIST_FILTERS = (
    "length", "first", "last", "list", "reverse|list", "sort", "sort(reverse=true)", "sort(case_sensitive=true)",
    "unique|list", "join", "join(', ')", "join('|', attribute='name')", "min", "max", "sum", "sum(start=1.5)",
    "sum(attribute='age')", "map('string')|list", "map('upper')|join", "map(attribute='name')|list",
    "map(attribute='city.name', default='?')|list", "map('default', 0)|list", "select|list", "reject|list",
    "select('string')|list", "select('gt', 1)|list", "reject('none')|list", "selectattr('age')|list|length",
    "selectattr('age', 'eq', 30)|map(attribute='name')|join", "rejectattr('extra', 'defined')|list|length",
    "groupby('age')", "groupby('city.name')|list", "groupby('age', default=1)|map('first')|list", "sort(attribute='age')|map(attribute='name')|list",
    "sort(attribute='age,name')|map(attribute='name')|list", "max(attribute='age')", "min(attribute='name')",
    "batch(2)|list", "batch(2, 'x')|list", "slice(2)|list", "slice(3, 0)|list", "tojson", "tojson(indent=2)",
    "tojson(separators=(',', ':'))", "tojson(sort_keys=true)", "string", "default([])", "dictsort",
    "items|list", "count", "map('length')|list", "map('int')|sum", "map('abs')|list", "map('round')|list")
DICT_FILTERS = (
    "length", "list", "dictsort", "dictsort(true)", "dictsort(by='value')", "dictsort(reverse=true)", "items|list",
    "tojson", "tojson(indent=1)", "tojson(ensure_ascii=true)", "first", "last", "join(',')", "string", "default('x')",
    "reverse|list", "sort", "urlencode", "map('upper')|list", "items|map('first')|list")
NUMBER_FILTERS = (
    "abs", "int", "float", "round", "round(1)", "round(2, 'ceil')", "round(method='floor')", "round(-1)", "string",
    "tojson", "default(1)", "filesizeformat", "filesizeformat(true)", "string|length", "upper", "trim", "center(9)",
    "round|int", "abs|round(3)", "length", "list", "escape")
TEXT_METHODS = (
    "upper()", "lower()", "title()", "capitalize()", "swapcase()", "casefold()", "strip()", "strip('Hd ')",
    "lstrip()", "rstrip('\\n')", "split()", "split(',')", "split('l', 1)", "split(none, 1)", "rsplit('l', 1)",
    "rsplit(maxsplit=1)", "split(sep='o')", "splitlines()", "splitlines(true)", "startswith('He')", "endswith('d')",
    "startswith(('a', 'H'))", "endswith('l', 0, 4)", "replace('l', 'L')", "replace('l', 'L', 1)", "replace('', '.')",
    "find('o')", "find('o', 5)", "rfind('o')", "index('o')", "rindex('zz')", "count('l')", "count('', 2)", "zfill(15)",
    "center(21, '*')", "ljust(15) + '|'", "rjust(15, '.')", "partition(' ')", "rpartition('o')", "isalpha()",
    "isdigit()", "isalnum()", "isspace()", "islower()", "isupper()", "istitle()", "isnumeric()", "isidentifier()",
    "isascii()", "isprintable()", "removeprefix('He')", "removesuffix('ld')", "expandtabs(4)", "join(strs)",
    "join(['1', '2'])", "join('xyz')", "format(i, f)", "format(*list)", "format_map(d)", "strip().split(' ')",
    "split(' ')[-1]", "split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n')", "nope")
LIST_METHODS = (
    "index(1)", "count(1)", "count('a')", "copy()", "copy()[0]", "count(none)", "copy()|length", "0", "1|default('-')",
    "append(1)", "pop")
DICT_METHODS = (
    "get('a')", "get('zz')", "get('zz', 5)", "items()|list", "keys()|list", "values()|list", "items()", "keys()",
    "values()", "copy()", "pop('a')", "a", "b", "c|default(0)", "zz", "get('b', i)", "items() is iterable", "name",
    "keys()|sort|join", "values()|map('string')|join", "get('a', {}) is mapping")
FORMATS = (
    "'%s' % X", "'%5.2f' % X", "'%d' % X", "'%05d|%-6s|%+d' % (i, s, i)", "'%(a)s-%(b)r' % d", "'%x %o %X' % (i, i, i)",
    "'%e %g %G' % (f, h, tiny)", "'%%' % ()", "'%c%c' % ('x', 65)", "'%s %s' % (X, Y)", "'%r' % X", "'%a' % u",
    "'{} {}'.format(X, Y)", "'{0}{1}{0}'.format(X, Y)", "'{:>8}|{:<8}|{:^8}'.format(s[:3], i, f)", "'{:.3f}'.format(f)",
    "'{:,}'.format(big)", "'{:08.3f}|{:+}|{:x}|{:b}'.format(f, i, i, i)", "'{a} {b!r}'.format(**d)",
    "'{0[a]} {0.b}'.format(d)", "'{:{}}'.format(s, 20)", "'{:%}'.format(g)", "'{:e}'.format(f)", "'{{}} {}'.format(X)",
    "'{:_}'.format(big)", "'{:*^12}'.format(s[:4])", "'%s'|format(X)", "'%s-%s'|format(X, Y)", "'{!s:>9}'.format(X)",
    "'{:d}'.format(X)", "'{:s}'.format(X)", "'%.3s|' % s", "'%*d' % (6, i)", "'%i' % f")


class Grammar:
    def __init__(self, number):
        self.random = random.Random(number)
        self.depth = 0

    def pick(self, choices):
        return self.random.choice(choices)

    def chance(self, share):
        return self.random.random() < share

    # ---- expressions

    def expression(self, depth=3, kind=None):
        if kind is None or self.chance(0.025):
            kind = self.pick(("int", "float", "text", "text", "list", "dict", "bool", "other"))
        return getattr(self, f"_{kind}")(depth)

    def filtered(self, value, filters):
        text = f"{value}|{self.pick(filters)}"
        return text if self.chance(0.1) else f"({text})"

    def _int(self, depth):
        if depth <= 0 or self.chance(0.3):
            return self.pick((str(self.random.randrange(-3, 12)), self.pick(INTS)))
        a, b = self.expression(depth - 1, "int"), self.expression(depth - 1, "int")
        return self.pick((
            f"({a} {self.pick(('+', '-', '*', '//', '%'))} {b})", f"-{a}", f"({a} ** {self.random.randrange(0, 4)})",
            f"({self.expression(depth - 1, 'text')}|length)", f"({self.expression(depth - 1, 'list')}|length)",
            f"({a} if {self.expression(depth - 1, 'bool')} else {b})", f"({a}|abs)", f"({a}|int)", f"(+{a})",
            f"{self.expression(depth - 1, 'text')}.count({self.pick(LITERALS)})",
            f"{self.expression(depth - 1, 'text')}.find({self.pick(LITERALS)})"))

    def _float(self, depth):
        if depth <= 0 or self.chance(0.3):
            return self.pick((self.pick(FLOATS), self.pick(("0.1", "1e3", "2.0", "1_000.5", "1E-7", "12345678.9"))))
        a, b = self.expression(depth - 1, "float"), self.expression(depth - 1, self.pick(("int", "float")))
        return self.pick((
            f"({a} {self.pick(('+', '-', '*', '/', '//', '%'))} {b})", f"({b} / {a})", self.filtered(a, NUMBER_FILTERS),
            self.filtered(f"({b})", NUMBER_FILTERS), f"({a}|round({self.random.randrange(0, 4)}))"))

    def _text(self, depth):
        if depth <= 0 or self.chance(0.25):
            return self.pick((self.pick(STRINGS), self.pick(LITERALS)))
        a, b = self.expression(depth - 1, "text"), self.expression(depth - 1, "text")
        choice = self.random.randrange(12)
        if choice < 2:
            return f"({a} + {b})"
        if choice == 2:
            return f"({a} ~ {self.expression(depth - 1)} ~ {b})"
        if choice < 5:
            return self.filtered(a, TEXT_FILTERS)
        if choice < 8:
            return f"{a}.{self.pick(TEXT_METHODS)}"
        if choice == 8:
            return f"{a}[{self.slice(depth - 1)}]"
        if choice == 9:
            return "(" + self.pick(FORMATS).replace("X", self.expression(depth - 1)).replace(
                "Y", self.expression(depth - 1)) + ")"
        if choice == 10:
            return f"({a} * {self.random.randrange(-1, 4)})"
        return f"({a} if {self.expression(depth - 1, 'bool')} else {b})"

    def _list(self, depth):
        if depth <= 0 or self.chance(0.25):
            return self.pick(LISTS)
        a = self.expression(depth - 1, "list")
        choice = self.random.randrange(9)
        if choice < 2:
            items = ", ".join(self.expression(depth - 1) for _ in range(self.random.randrange(4)))
            return f"[{items}]" if self.chance(0.6) else f"({items}{',' if items else ''})"
        if choice < 5:
            return self.filtered(a, LIST_FILTERS)
        if choice == 5:
            return f"{a}[{self.slice(depth - 1)}]"
        if choice == 6:
            return f"({a} + {self.expression(depth - 1, 'list')})"
        if choice == 7:
            return f"{a}.{self.pick(LIST_METHODS)}"
        return f"range({self.expression(1, 'int')}, {self.expression(1, 'int')})[:9]"

    def _dict(self, depth):
        if depth <= 0 or self.chance(0.3):
            return self.pick(DICTS)
        choice = self.random.randrange(5)
        if choice == 0:
            keys = ("'k'", "'a'", "1", "1.0", "true", "none", "'ü'", "(1, 2)", "i", "s")
            items = ", ".join(
                f"{self.pick(keys)}: {self.expression(depth - 1)}" for _ in range(self.random.randrange(4)))
            return "{" + items + "}"
        if choice == 1:
            return f"dict({self.pick(('', 'a=1, b=s', 'd', 'pairs', 'd, a=2', '[(1, 2)]', 'i'))})"
        if choice == 2:
            return self.filtered(self.expression(depth - 1, "dict"), DICT_FILTERS)
        return f"{self.expression(depth - 1, 'dict')}.{self.pick(DICT_METHODS)}"

    def _bool(self, depth):
        if depth <= 0 or self.chance(0.15):
            return self.pick(("true", "false", "yes", "no", "True", "False"))
        a, b = self.expression(depth - 1), self.expression(depth - 1)
        number = self.pick(("int", "float"))
        choice = self.random.randrange(8)
        if choice < 2:
            return f"({a} is {self.pick(('', '', 'not '))}{self.pick(TESTS)})"
        if choice == 2:
            return f"({self.expression(depth - 1, number)} {self.pick(('<', '<=', '>', '>='))} {self.expression(depth - 1, number)})"
        if choice == 3:
            return f"({a} {self.pick(('==', '!='))} {b})"
        if choice == 4:
            return f"(not {a})"
        if choice == 5:
            kind = self.pick(("text", "list", "dict", "other"))
            left = self.pick(LITERALS) if self.chance(0.6) else a
            return f"({left} {self.pick(('in', 'not in'))} {self.expression(depth - 1, kind)})"
        if choice == 6:
            return f"({self.expression(1, 'int')} < {self.expression(1, 'int')} <= {self.expression(1, 'int')})"
        return f"({a} {self.pick(('and', 'or'))} {b})"

    def _other(self, _):
        return self.pick(OTHERS if self.chance(0.7) else ("x", "y", "z", "loop", "ns"))

    def slice(self, depth):
        """What goes into brackets."""
        end = ["", "0", "1", "-1", "2", "-2", "5", "100", "i", "none"]
        if self.chance(0.4):
            return self.pick(("0", "-1", "1", "7", "-9", "i", "'a'", "1.5", "none", "true", "zero"))
        text = f"{self.pick(end)}:{self.pick(end)}"
        return text + (f":{self.pick(('', '1', '-1', '2', '-2', '3', '0'))}" if self.chance(0.4) else "")

    # ---- statements

    def template(self):
        if self.chance(0.45):
            return "{{ " + self.expression(4) + " }}"
        return "".join(self.statement() for _ in range(self.random.randrange(1, 5)))

    def tag(self, text):
        return f"{{%{self.pick(('', '', '-', '-', '+'))} {text} {self.pick(('', '', '-', '-', '+'))}%}}"

    def print(self):
        return f"{{{{{self.pick(('', '-', '', '+'))} {self.expression(2)} {self.pick(('', '-'))}}}}}"

    def data(self):
        return self.pick((
            "text", " ", "\n", "  \n  ", "a\n", "\n    b", "{# note #}", "{#- note -#}\n", "x {#+ y +#} \n z", "{ }",
            "<|im_start|>", "{% raw %}{{ raw }}{% endraw %}", "  {%- raw -%} {% x %} {%- endraw -%}  ", "\t", "ü", "}}"))

    def body(self):
        self.depth += 1
        count = self.random.randrange(1, 4) if self.depth < 4 else 1
        text = "".join(self.statement() for _ in range(count))
        self.depth -= 1
        return text

    def statement(self):
        choices = ["print", "print", "data", "data", "data", "set"]
        if self.depth < 4:
            choices += [
                "if_", "if_", "for_", "for_", "for_", "macro", "set_block", "with_", "call", "filter", "namespace",
                "generation", "recursive", "names"]
        return getattr(self, self.pick(choices))()

    def set(self):
        name = self.pick(("x", "y", "z", "i", "s"))
        text = self.pick((
            f"set {name} = {self.expression(2)}", f"set {name}, w = {self.expression(1)}, {self.expression(1)}",
            f"set x, y = ({self.expression(2, 'list')} + [1, 2])[:2]", "set (x, z) = pairs[0]"))
        return self.tag(text) + self.pick(("", "{{ x }}", f"{{{{ {name} }}}}"))

    def names(self):
        return self.pick(("{{ x }}", "{{ y }}", "{{ x is defined }}", "{{ z|default('-') }}", "{{ i }}", "{{ loop }}"))

    def if_(self):
        text = self.tag(f"if {self.expression(2, 'bool')}") + self.body()
        if self.chance(0.4):
            text += self.tag(f"elif {self.expression(2)}") + self.body()
        if self.chance(0.5):
            text += self.tag("else") + self.body()
        return text + self.tag("endif")

    def loop_part(self):
        return self.pick((
            "{{ loop.index }}", "{{ loop.index0 }}", "{{ loop.first }}", "{{ loop.last }}", "{{ loop.length }}",
            "{{ loop.revindex }}{{ loop.revindex0 }}", "{{ loop.previtem }}", "{{ loop.nextitem }}",
            "{{ loop.cycle('a', 'b') }}", "{{ loop.changed(x) }}", "{{ loop.depth }}{{ loop.depth0 }}", "{{ loop.nope }}",
            "{{ loop.previtem is defined }}{{ loop.nextitem is undefined }}", "{{ loop }}", "{{ ',' if not loop.last }}"))

    def for_(self):
        source = self.expression(2, self.pick(("list", "list", "list", "text", "dict", "other")))
        target = self.pick(("x", "x", "x", "y", "x, y", "(x, y)"))
        if "," in target:
            source = self.pick(("d.items()", "pairs", "d|items", "d|dictsort", "ed|items", source, "people|groupby('age')"))
        test = f" if {self.pick(('x', 'x != 1', 'x is string', 'loop', self.expression(1, 'bool')))}" if self.chance(0.2) else ""
        text = self.tag(f"for {target} in {source}{test}")
        inner = "{{ x }}" + (self.loop_part() if self.chance(0.6) else "") + (self.body() if self.chance(0.6) else "")
        if self.chance(0.15):
            stop = self.pick(("break", "continue"))
            inner += self.tag(f"if {self.pick(('x == 1', 'loop.index > 1', 'true', 'x'))}") + self.tag(stop) + self.tag("endif")
        text += inner
        if self.chance(0.25):
            text += self.tag("else") + self.body()
        return text + self.tag("endfor")

    def recursive(self):
        return (
            self.tag(f"for x in {self.pick(('nested', 'mixed', 'messages', 'people'))} recursive") +
            self.pick(("{{ x if x is string or x is number else loop(x) }}", "{{ loop.depth }}{% if x is sequence and x is not string %}({{ loop(x) }}){% endif %}",
                       "{% if x is mapping %}{{ loop(x.values()|list) }}{% elif x is iterable and x is not string %}{{ loop(x) }}{% else %}{{ x }},{% endif %}")) +
            self.tag("endfor"))

    def macro(self):
        name = self.pick(("m", "m2"))
        signature = self.pick(("", "a", "a, b", "a, b=2", "a='x', b=a", "a, b=y, c=missing"))
        special = self.pick(("", "", "{{ caller() }}", "{{ caller('z') if caller else '-' }}", "{{ kwargs|tojson }}", "{{ varargs|list }}", "{{ kwargs }}{{ varargs }}"))
        text = self.tag(f"macro {name}({signature})") + "{{ a }}/{{ b }}" + special + self.body() + self.tag("endmacro")
        calls = (
            f"{name}()", f"{name}()", f"{name}(1)", "m(1)", f"{name}(1, 2)", "m(b=1)", "m(1, c=4)", f"{name}(s)", "m(*list)",
            f"{name}.name", f"{name}.arguments", name)
        return text + "".join(f"{{{{ {self.pick(calls)} }}}}" for _ in range(self.random.randrange(3)))

    def call(self):
        head = self.pick(("call m()", "call m(1)", "call(x) m(2)", "call(x, y=3) m(1, 2)", "call m(a=1)", "call(x='-') m()", "call s.upper()" if self.chance(0.2) else "call m(s)"))
        define = "{% macro m(a, b=0) %}[{{ a }}{{ caller(1) if a == 2 else caller() }}]{% endmacro %}" if self.chance(0.9) else ""
        return define + self.tag(head) + self.body() + self.tag("endcall")

    def set_block(self):
        filters = self.pick(("", "", "|upper", "|trim|length", "|replace('a', 'b')"))
        return self.tag(f"set x{' ' if filters else ''}{filters}") + self.body() + self.tag("endset") + "{{ x }}"

    def with_(self):
        head = self.pick(("with", "with x = 1", "with x = i, y = x", f"with x = {self.expression(1)}"))
        return self.tag(head) + "{{ x }}" + self.body() + self.tag("endwith")

    def filter(self):
        return self.tag(f"filter {self.pick(('upper', 'trim', 'indent(2)', 'replace(s, i)', 'length', 'trim|title'))}") + self.body() + self.tag("endfilter")

    def namespace(self):
        start = self.pick((
            "namespace(a=1)", "namespace(a=0)", "namespace(d)", "namespace(a=s, b=[])",
            "i" if self.chance(0.2) else "namespace(a=[])"))
        text = self.tag(f"set ns = {start}")
        change = self.pick((
            "ns.a = ns.a ~ 1", f"ns.b = {self.expression(1)}", "ns.a, x = 1, 2", "ns.c = x", "ns.a = ns.a|default(0) ~ i",
            "ns._x = 1" if self.chance(0.3) else "ns.b = [ns.a]"))
        if self.chance(0.5):
            return text + self.tag("for x in list") + self.tag(f"set {change}") + self.tag("endfor") + "{{ ns.a }}{{ ns.b }}{{ ns }}"
        return text + self.tag(f"set {change}") + self.pick(("{{ ns.a }}", "{{ ns.nope }}", "{{ ns.b is defined }}", "{{ ns['a'] }}"))

    def generation(self):
        return self.tag("generation") + self.body() + self.tag("endgeneration")


def make(number):
    """The template of a case."""
    return Grammar(number).template()
