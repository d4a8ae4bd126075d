"""Templates by feature, for tests/fixtures/jinja_cases.json: each is rendered by Jinja2 as transformers sets it up.

Groups of templates; variables are those of jinja_grammar.py unless a template is given with its own.
"""

CASES = {
    "printing": (
        "{{ 1 }} {{ -1 }} {{ 1.0 }} {{ 1e16 }} {{ 1e15 }} {{ 1e-5 }} {{ 0.0001 }} {{ 123456789.123456789 }} {{ 1e22 }}",
        "{{ true }} {{ none }} {{ [1, 'a', none, 2.5, (1,), {}] }} {{ {'a': [1], 2: 'b'} }} {{ () }} {{ (1, 2) }}",
        "{{ 'it\\'s' }} {{ [\"it's\", 'say \"x\"', 'a\\nb\\t\\\\', '\\x00\\x7f', 'é', '\\u200b', '😀'] }}",
        "{{ range(3) }} {{ range(1, 9, 2) }} {{ d.items() }} {{ d.keys() }} {{ d.values() }} {{ namespace(a=1) }}",
        "{{ 12345678901234567890 }} {{ -12345678901234567890 }} {{ 0xff }} {{ 0b101 }} {{ 0o17 }} {{ 1_000 }} {{ 1_0.5_0 }}",
        "[{{ missing }}] [{{ [missing] }}] {{ missing is undefined }} {{ d.nothere }} {{ d['nothere'] }} {{ list[99] }}",
        ("{{ x }} {{ y }} {{ z }} {{ [x, y, z, w] }}", {"x": 1.0, "y": 1e400, "z": 1e5, "w": -0.0}),
        ("{{ x|tojson }}", {"x": [1.0, 1, 1e100, 1e-7, 123456789012345678901234567890, True, None, "é\"\\/\n\x7f\u2028"]}),
    ),
    "white space": (
        "a\n{% if true %}\nb\n{% endif %}\nc\n", "  {% if true %}  x  {% endif %}  y", "a  {%- if true -%}  b  {%- endif -%}  c",
        "a\n  {%+ if true %}b{% endif +%}\nc", "a {{- 1 -}} b {{ 2 }}\n c", "a\n    {# note #}\nb", "a {#- note -#} b {#+ n +#}\n c",
        "{% raw %}\n {{ x }} {% y %}{% endraw %}\nz", "a  {%- raw -%}  {{ x }}  {%- endraw -%}  b", "x\r\ny\rz\n", "x\n\n", "\n", "",
        "{{ 1 }}\n{{ 2 }}\n", "  {{ 1 }}\n  {% set x = 2 %}\n  {{ x }}", "{% for i in list %}\n{{ i }}\n{% endfor %}\n", "}} %} #}",
        "\t \u00a0{% set x = 1 %}|", "a\u2003{%- set x = 1 -%}\u2003b", "{{ '}}' }}{{ '%}' }}{{ {'a': {'b': 1}}['a']['b'] }}",
    ),
    "operators": (
        "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % -3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ 7.5 // 2 }}",
        "{{ -7.5 % 2 }} {{ 1 + 2 * 3 - 4 }} {{ (1 + 2) * 3 }} {{ 10 - 2 - 3 }} {{ 2 ** 3 ** 2 }} {{ +3 }} {{ - -3 }}",
        "{{ 'a' + 'b' }} {{ 'ab' * 3 }} {{ 2 * [1] }} {{ [1] + [2] }} {{ (1,) + (2,) }} {{ 'a' ~ 1 ~ none ~ 2.0 ~ missing }}",
        "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 1 != 'a' }}",
        "{{ 'a' in 'cab' }} {{ 1 in [1.0] }} {{ 'a' in d }} {{ 'x' not in d }} {{ 3 in range(5) }} {{ '' in '' }} {{ 1 in missing }}",
        "{{ 0 or 'x' }} {{ 1 and 'x' }} {{ '' and x }} {{ not 0 }} {{ not not 1 }} {{ 'a' if none else 'b' }} {{ 'a' if no }}",
        "{{ 1 if false }}|{{ (1 if false) is undefined }}|{{ 1 + (2 if false) }}", "{{ 1 + 'a' }}", "{{ 'a' + 1 }}", "{{ 1 / 0 }}", "{{ 1 % 0 }}",
        "{{ 1 < 'a' }}", "{{ none + 1 }}", "{{ missing + 1 }}", "{{ [1] < ['a'] }}", "{{ -'a' }}", "{{ 1 in 5 }}", "{{ 5 in 'a' }}", "{{ {[]: 1} }}",
        "{{ 9223372036854775807 }} {{ -9223372036854775807 - 1 }} {{ 2 ** 62 }} {{ 0.1 + 0.2 }} {{ 1e308 * 10 }} {{ 3.0 == 3 }}",
    ),
    "slices": (
        "{{ s[0] }}{{ s[-1] }}{{ s[1:4] }}{{ s[:3] }}{{ s[3:] }}{{ s[::-1] }}{{ s[::2] }}{{ s[-3:-1] }}{{ s[5:2] }}{{ s[99:] }}",
        "{{ emoji[1] }}{{ emoji[::-1] }}{{ u[2:5] }}{{ list[::-1] }}{{ list[1:] }}{{ (1, 2, 3)[:2] }}{{ range(9)[2:8:3] }}",
        "{{ list[0] }}{{ list.0 }}{{ nested[0][1] }}{{ d['a'] }}{{ d.a }}{{ people[0].city.name }}{{ list[true] }}{{ s[99] is undefined }}",
        "{{ s[::0] }}", "{{ d[1:2] }}", "{{ missing[1:] }}", "{{ list['a'] }}{{ list[1.5] }}{{ 5[0] }}{{ none.x }}", "{{ missing.x }}", "{{ missing['x'] }}",
        "{{ people[0].nope.deep }}", "{{ s.nope.deep }}", "{{ list[9].x }}", "{{ d['items'] }}{{ d.items is callable }}{{ d.__class__ }}{{ d.pop }}",
    ),
    "names": (
        "{% set x = 1 %}{% for i in [2] %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}", "{% for i in [1] %}{% set q = i %}{% endfor %}{{ q }}",
        "{% if true %}{% set q = 1 %}{% endif %}{{ q }}", "{% if false %}{% set s = 1 %}{% endif %}{{ s }}", "{% macro m() %}{{ q }}{% endmacro %}{% set q = 3 %}{{ m() }}",
        "{% macro m() %}{{ s }}{% endmacro %}{{ m() }}{% set s = 3 %}{{ m() }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (a, b) = [b, a] %}{{ a }}{{ b }}",
        "{% set ns = namespace(n=0) %}{% for i in list %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}{{ ns['n'] }}{{ ns.q }}", "{% set ns = {} %}{% set ns.a = 1 %}",
        "{% set ns = namespace() %}{% set ns._a = 1 %}", "{{ namespace(_a=1) }}", "{% set x %}  a {{ i }} {% endset %}[{{ x }}]{% set y | trim | upper %} b {% endset %}[{{ y }}]",
        "{% with a = 1, b = i %}{{ a }}{{ b }}{% set a = 5 %}{{ a }}{% endwith %}{{ a }}", "{% with i = 1, q = i %}{{ q }}{% endwith %}", "{% set a, b = [1] %}", "{% set a, b = 'xyz' %}", "{% set a, b = 5 %}",
        "{% set true = 1 %}", "{% set 1 = 2 %}", "{% set x.y.z = 2 %}", "{% for i, in [[1]] %}{{ i }}{% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    ),
    "loops": (
        "{% for x in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
        "{% for x in el %}a{% else %}b{% endfor %}{% for x in missing %}a{% else %}c{% endfor %}", "{% for x in list if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }},{{ loop.last }}{% endfor %}",
        "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for k, v in d|dictsort %}{{ k }}{% endfor %}", "{% for c in emoji %}{{ c }}.{% endfor %}",
        "{% for x in range(9) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in [1] %}{% break %}{% else %}E{% endfor %}",
        "{% for x in list %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }}{% endfor %}", "{% for x in nested recursive %}{{ loop.depth }}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% endfor %}",
        "{% for x in list %}{% for y in list %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for x in none %}{% endfor %}", "{% for a, b in list %}{% endfor %}",
        "{% break %}", "{% for x in list %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% for loop in list %}{% endfor %}", "{% for x in list %}{% set loop = 1 %}{% endfor %}", "{{ loop }}{{ loop.index }}",
        "{% for x in list %}{{ loop(x) }}{% endfor %}", "{% for x in list %}{% filter upper %}a{% if x == 1 %}{% break %}{% endif %}{% endfilter %}{% endfor %}z", "{% for x in list %}{{ loop }}{% endfor %}",
        "{% set it = list|map('string') %}{{ it|list }}{{ it|list }}{% for x in strs|map('upper') %}{{ x }}{{ loop.length }}{{ loop.last }}{% endfor %}", "{% for x in list %}{% for y in loop %}{{ y[0] }}{% endfor %}{% endfor %}",
    ),
    "macros": (
        "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }} {{ m() }}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}",
        "{% macro m(a) %}[{{ caller(a) }}]{% endmacro %}{% call(x) m(7) %}{{ x }}!{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}",
        "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}", "{% macro m(a, a) %}{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}",
        "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}", "{% macro m(a) %}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m }}{{ m is callable }}", "{{ s() }}", "{{ missing() }}", "{{ s.upper(1) }}",
        "{% macro m(caller) %}{{ caller() }}{% endmacro %}", "{% call m() %}{% endcall %}", "{% call s %}{% endcall %}", "{{ m(a=1, a=2) }}", "{{ [1, 2]|join(*['-']) }}{{ 'a-b'.split(**{'sep': '-'}) }}", "{% filter upper|trim %} a{{ i }} {% endfilter %}",
        "{% filter length %}abc{% endfilter %}", "{% print 1, 'a' %}", "{{ cycler('a', 'b').next() }}{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}", "{% set j = joiner('|') %}{{ j() }}a{{ j() }}b{{ j() }}",
        "{{ dict(missing) }}", "{{ namespace(missing) }}", "{{ dict(a=1, b=2) }}{{ dict([('x', 1)], y=2) }}{{ dict(d).a }}", "{{ raise_exception('no ' ~ i) }}", "{{ strftime_now('%Y-%m-%d %H:%M:%S %A %d %b %j %%') }}", "{{ range(100001) }}", "{{ range(5, 0, -2)|list }}{{ range(0)|list }}", "{{ range(1, 2, 0) }}",
    ),
    "text filters": (
        "{{ s|upper }}{{ u|upper }}{{ u|lower }}{{ u|title }}{{ 'ab-cd (ef) g.h'|title }}{{ 'hELLO wORLD'|capitalize }}{{ 5|upper }}", "[{{ t|trim }}][{{ 'xxaxx'|trim('x') }}][{{ 'a'|center(4) }}][{{ 'ab'|center(5) }}]", "{{ s|replace('l', 'L') }}{{ s|replace('l', 'L', 1) }}{{ 'ab'|replace('', '-') }}{{ 5|replace(5, 6) }}",
        "{{ lines|indent }}|{{ lines|indent(2, true) }}|{{ lines|indent('> ', first=true, blank=true) }}", "{{ s|truncate(8) }}{{ s|truncate(5, true) }}{{ s|truncate(7, false, '', 0) }}{{ s|truncate(2) }}", "{{ s|wordcount }}{{ u|wordcount }}{{ html|e }}{{ html|e|e }}{{ html|safe|e }}{{ html|forceescape }}", "{{ 'a b&c/ü'|urlencode }}{{ {'a b': 1, 'c': 'd/e'}|urlencode }}",
        "{{ ('<'|safe) + '<' }}{{ '<' + ('<'|safe) }}{{ ('%s'|safe) % '<' }}{{ ('<'|e) ~ '<' }}{{ ['<', '<'|safe]|join }}{{ ('{}'|safe).format('<') }}{{ ('a<'|safe).replace('a', '<') }}", "{{ '%s-%05.1f-%d-%x'|format('a', 3.14159, 42, 255) }}{{ '%(a)s'|format(a=1) }}", "{{ 'x'|nofilter }}", "{% if false %}{{ 'x'|nofilter }}{% endif %}ok", "{{ 'x' if true else ('x'|nofilter) }}", "{{ 'x' is notest }}",
        "{{ 'a'|indent(first=1, q=2) }}", "{{ 'a'|replace('b') }}", "{{ 1|filesizeformat }}{{ 999|filesizeformat }}{{ 123456|filesizeformat }}{{ 123456|filesizeformat(true) }}",
    ),
    "number filters": (
        "{{ '42'|int }}{{ 'x'|int }}{{ 'x'|int(7) }}{{ '0x1f'|int(0, 16) }}{{ '42.9'|int }}{{ 3.9|int }}{{ -3.9|int }}{{ none|int }}{{ true|int }}{{ ' 1_000 '|int }}", "{{ '4.5'|float }}{{ 'x'|float }}{{ 'x'|float(1) }}{{ 5|float }}{{ '1e3'|float }}{{ 'inf'|float }}{{ 'nan'|float }}",
        "{{ 2.5|round }}{{ 3.5|round }}{{ 2.675|round(2) }}{{ 42.55|round(1, 'floor') }}{{ 42.51|round(1, 'ceil') }}{{ 5|round }}{{ 15|round(-1) }}{{ 25|round(-1) }}{{ 1234.5|round(-2) }}", "{{ -5|abs }}{{ (-5)|abs }}{{ (-2.5)|abs }}{{ true|abs }}", "{{ 'a'|abs }}", "{{ missing|int }}", "{{ 'inf'|float|int }}", "{{ 1|round(method='x') }}",
    ),
    "list filters": (
        "{{ list|sort }}{{ strs|sort }}{{ strs|sort(case_sensitive=true) }}{{ list|sort(reverse=true) }}{{ people|sort(attribute='age')|map(attribute='name')|list }}{{ people|sort(attribute='age,name', reverse=true)|map(attribute='name')|list }}", "{{ mixed|sort }}", "{{ dup|unique|list }}{{ dup|unique(true)|list }}{{ nested|unique|list }}",
        "{{ list|min }}{{ list|max }}{{ strs|min }}{{ strs|max(case_sensitive=true) }}{{ el|min }}{{ people|max(attribute='age') }}", "{{ list|sum }}{{ floats|sum }}{{ list|sum(start=10) }}{{ people|sum(attribute='age') }}{{ strs|sum }}", "{{ list|first }}{{ list|last }}{{ el|first }}{{ s|last }}{{ d|first }}{{ d|last }}", "{{ list|map('string')|last }}",
        "{{ list|join }}{{ list|join('-') }}{{ people|join(', ', attribute='name') }}{{ mixed|join('|') }}", "{{ list|reverse|list }}{{ s|reverse }}{{ list|batch(2)|list }}{{ list|batch(2, 0)|list }}{{ [1, 2, 3, 4, 5, 6, 7]|slice(3)|list }}{{ list|slice(2, 'x')|list }}", "{{ people|groupby('age') }}{{ people|groupby('city.name')|map('first')|list }}{% for g in people|groupby('age') %}{{ g.grouper }}{{ g.list|length }}{% endfor %}",
        "{{ d|dictsort }}", "{{ {'b': 1, 'A': 3, 'c': 2}|dictsort }}{{ {'b': 1, 'A': 3}|dictsort(true) }}{{ {'b': 1, 'A': 3}|dictsort(by='value', reverse=true) }}", "{{ list|map('abs')|list }}{{ strs|map('upper')|join }}{{ people|map(attribute='city.name')|list }}{{ people|map(attribute='extra', default='-')|list }}{{ list|map('pow')|list }}", "{{ list|map|list }}",
        "{{ list|select('odd')|list }}{{ list|reject('odd')|list }}{{ mixed|select|list }}{{ mixed|reject|list }}{{ list|select('gt', 1)|list }}{{ people|selectattr('tags')|map(attribute='name')|list }}{{ people|rejectattr('age', 'eq', 30)|map(attribute='name')|list }}{{ people|selectattr('extra', 'defined')|list|length }}", "{{ list|select('nope')|list }}", "{{ list|selectattr|list }}",
        "{{ s|list }}{{ d|list }}{{ range(3)|list }}{{ 5|list }}", "{{ d|items|list }}{{ missing|items|list }}{{ 5|items|list }}", "{{ list|length }}{{ s|count }}{{ emoji|length }}{{ d|length }}{{ 5|length }}", "{{ missing|default('x') }}{{ ''|default('x') }}{{ ''|default('x', true) }}{{ none|d('x') }}{{ missing|default }}", "{{ d|attr('a') }}{{ s|attr('upper')() }}",
    ),
    "tojson": (
        "{{ messages|tojson }}", "{{ messages[2]|tojson(indent=2) }}", "{{ d|tojson(sort_keys=true) }}{{ d|tojson(separators=(',', ':')) }}{{ u|tojson(ensure_ascii=true) }}{{ emoji|tojson(ensure_ascii=true) }}", "{{ [[], {}, [1, {'a': []}]]|tojson(indent=1) }}{{ [1]|tojson(indent='\\t') }}{{ [1]|tojson(indent=0) }}", "{{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }}", "{{ {(1, 2): 3}|tojson }}",
        "{{ missing|tojson }}", "{{ d.items()|tojson }}", "{{ ('<a>'|safe)|tojson }}{{ (1, 2)|tojson }}{{ 'nan'|float|tojson }}{{ 1e16|tojson }}", "{{ {'b': 1, 'a': 2, 3: 4}|tojson(sort_keys=true) }}",
    ),
    "tests": (
        "{% for x in [none, true, 1, 1.0, 's', [], (), {}, range(2), missing] %}{{ x is defined }}{{ x is none }}{{ x is string }}{{ x is number }}{{ x is integer }}{{ x is float }}{{ x is boolean }}{{ x is mapping }}{{ x is sequence }}{{ x is iterable }}{{ x is callable }};{% endfor %}", "{{ 3 is odd }}{{ 4 is even }}{{ 9 is divisibleby 3 }}{{ 9 is divisibleby(2) }}{{ 'a' is lower }}{{ 'A' is upper }}{{ 'aB' is lower }}{{ '' is lower }}",
        "{{ 1 is eq 1 }}{{ 1 is ne(2) }}{{ 1 is lt 2 }}{{ 1 is in [1] }}{{ none is sameas none }}{{ true is true }}{{ 1 is true }}{{ false is false }}{{ 'upper' is filter }}{{ 'odd' is test }}{{ 'x' is filter }}{{ ('a'|safe) is escaped }}", "{{ 1 is not none }}{{ not 1 is none }}{{ 1 is defined and 2 is defined }}{{ 1 is defined is defined }}", "{{ 'a' is odd }}", "{{ 5 is divisibleby 0 }}", "{{ 1 is eq }}",
    ),
    "methods": (
        "{{ s.upper() }}{{ s.lower() }}{{ u.title() }}{{ \"they're x1y\".title() }}{{ s.swapcase() }}{{ u.casefold() }}{{ 'ΑΣ ΣΑΣ'.lower() }}{{ 'ŉ ﬁ ǆ'.upper() }}{{ 'ﬁ ǆa'.title() }}", "{{ csv.split(',') }}{{ ' a  b '.split() }}{{ ' a  b '.split(none, 1) }}{{ 'a-b-c'.rsplit('-', 1) }}{{ lines.splitlines() }}{{ lines.splitlines(true) }}{{ ''.split() }}{{ ''.split(',') }}{{ 'aXbX'.split('X') }}",
        "[{{ t.strip() }}][{{ '..a..'.strip('.') }}][{{ t.lstrip() }}][{{ t.rstrip() }}][{{ 'abcba'.strip('ab') }}]{{ 'a'.strip(1) }}", "{{ s.startswith('He') }}{{ s.endswith(('x', 'd')) }}{{ s.find('o') }}{{ s.rfind('o') }}{{ s.find('zz') }}{{ s.index('W') }}{{ s.count('l') }}{{ emoji.find('b') }}{{ ''.count('') }}{{ s.find('o', 5, -1) }}", "{{ s.index('zz') }}", "{{ ','.join(strs) }}{{ ''.join([]) }}{{ ','.join(list) }}",
        "{{ 'a,b'.partition(',') }}{{ 'a,b,c'.rpartition(',') }}{{ 'ab'.partition(',') }}{{ 'ab'.rpartition(',') }}{{ 'abc'.removeprefix('a').removesuffix('c') }}{{ '-42'.zfill(6) }}{{ 'a\tb'.expandtabs(4) }}{{ 'a'.ljust(3) }}|{{ 'a'.rjust(3, '.') }}{{ 'ab'.center(5, '*') }}", "{{ '5'.isdigit() }}{{ 'a'.isalpha() }}{{ 'a5'.isalnum() }}{{ ' '.isspace() }}{{ 'Ab'.istitle() }}{{ 'a'.isidentifier() }}{{ 'é'.isascii() }}{{ ''.isalpha() }}",
        "{{ '{} {}'.format(1, 'a') }}{{ '{1}{0}'.format(1, 2) }}{{ '{a}'.format(a=1) }}{{ '{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}|{:,}|{:x}|{:%}'.format(1, 2, 3, 4, 5.678, 1234567, 255, 0.5) }}{{ '{0.a}{0[b]}'.format(d) }}{{ '{!r}'.format('a') }}{{ '{{}}'.format() }}", "{{ '{}'.format() }}", "{{ '{'.format() }}", "{{ '{:d}'.format('a') }}", "{{ '%s %s' % (1,) }}", "{{ '%d' % 'a' }}", "{{ '%s' % (1, 2) }}",
        "{{ '%5s|%-5s|%05d|%+d|%.3f|%e|%g|%x|%o|%c|%%|%r|%a' % ('a', 'b', 42, 7, 3.14159, 12345.678, 0.00001, 255, 8, 'z', 'q', 'é') }}{{ '%(a)s %(b)s' % d }}{{ '%s' % none }}{{ '%s' % [1] }}{{ '%*d' % (5, 3) }}", "{{ d.get('a') }}{{ d.get('zz') }}{{ d.get('zz', 1) }}{{ d.keys()|list }}{{ d.values()|list }}{{ d.copy().a }}", "{{ d.update({}) }}", "{{ list.append(1) }}", "{{ list.index(2) }}{{ list.count(1) }}{{ (1, 2).index(2) }}{{ list.copy() }}", "{{ list.index(99) }}",
        "{{ (5).bit_length() }}{{ (2.0).is_integer() }}{{ i.real }}{{ f.imag }}", "{{ s.nope() }}", "{{ s.split('') }}", "{{ none.x() }}", "{{ s.split(1) }}",
    ),
    "strings": (
        "{{ 'a\\nb\\tc\\\\d\\'e\\\"f\\x41\\u00e9\\U0001F600\\101\\q' }}", "{{ 'a' 'b' \"c\" }}", "{{ 'line\nbreak' }}", "{{ 'a\\\nb' }}", "{{ '\\x4' }}", "{{ '\\u12' }}", "{{ 'open }}", "{{ \"open }}",
    ),
    "generation": (
        "a{% generation %}b{{ i }}{% endgeneration %}c{% generation %}é😀{% endgeneration %}", "{% for m in messages %}{{ m.role }}:{% generation %}{{ m.content }}{% endgeneration %}\n{% endfor %}", "{% generation %}{% set x = 1 %}{{ x }}{% endgeneration %}{{ x }}", "{% generation %}", "{% for x in list %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
        "{%- generation -%} a {%- endgeneration -%} b",
    ),
    "faults": (
        "{{", "{{ 1", "{% if %}", "{% if x %}", "{% if x %}{% endfor %}", "{% nope %}", "{% endif %}", "{{ ) }}", "{{ (1 }}", "{{ [1 }}", "{{ {1} }}", "{{ 1 2 }}", "{{ }}", "{% %}", "{% set %}", "{% for x %}{% endfor %}", "{% for %}", "{% macro %}", "{# open", "{% raw %}open", "{{ a b }}", "{{ 'a' is }}", "{{ a| }}", "{{ a.. }}", "{{ a[ }}", "{{ ? }}",
        "{{ a! }}", "{{ 1 if }}", "{% if a %}{% elif %}{% endif %}", "{{ f(a b) }}", "{{ f(**a, b) }}", "{{ f(a=1, b) }}", "{{ a[1:2, 3] }}", "{{ not }}", "{{ 007 }}", "{{ 1__0 }}", "{{ a.'b' }}", "{% for x in list %}{% else %}{% else %}{% endfor %}", "{{ } }}", "{% if (1] %}{% endif %}", "x\ny\n{{ 1 +\n}}", "line\n  {% if a %}\n{{ missing.x }}{% endif %}\n  {{ missing.x }}",
    ),
}
