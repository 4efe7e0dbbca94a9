"""Jinja as transformers runs it: writes internal/leaf/jinja/testdata/jinja2.json, texts and what generation blocks marked of small templates: python jinjas.py FILE"""

import json
import sys

import transformers.utils.chat_template_utils as u
V=dict(x=[3,1,2],w=["b","A","a","c"],d={"b":1,"A":[1,2],"c":None},o=[{"k":"b","n":2},{"k":"a","n":1},{"k":"B","n":3}],n=None,s="a,b,,c",t="  one  two three ",f=2.675,big=7,html="<a href='x'>\"&\"</a>",lines="a\r\nb\nc\r\n",neg=-7)
T='''{% set a, b = 1, "q" %}{{ a }}{{ b }}
{% set (a, b) = (1, 2) %}{{ a + b }}
{% set a, b, c = x %}{{ a }}{{ b }}{{ c }}
{% raw %}{{ x }}{% if %}{% endraw %}|
{% raw -%}  {{ x }} {%- endraw -%}   |
{% macro m(a, b=2) %}[{{ a }}{{ b }}{{ caller() }}]{% endmacro %}{% call m(1) %}in {{ big }}{% endcall %}
{% macro m(a) %}{% for i in a %}{{ caller(i, loop.index) }};{% endfor %}{% endmacro %}{% call(i, j=9) m(x) %}{{ i }}-{{ j }}{% endcall %}
{% with a=1, b=big %}{{ a }}{{ b }}{% set a = 5 %}{{ a }}{% endwith %}{{ a is defined }}
{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}
{% filter upper %}ab{{ s }}{% endfilter %}
{% filter replace("a", "z") | upper %}ab{% endfilter %}
{% set z | trim | upper %}  hi {% endset %}[{{ z }}]
{% macro m(a, b, c=3) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(1, **{"b": 5, "c": 6}) }}{{ m(*[1], b=4) }}
{{ dict(d, z=1, y=2) }}{{ dict([("a", 1)]) }}{{ dict(z=1, a=2) }}
{{ 2 ** 3 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 2 ** -1 }} {{ 2 ** 0.5 }} {{ 2 * 3 ** 2 }}
{{ true is sameas true }}{{ 1 is sameas true }}{{ n is sameas none }}{{ x is sameas x }}{{ x is sameas [3,1,2] }}
{{ x|min }}{{ x|max }}{{ w|min }}{{ w|max }}{{ o|max(attribute="n") }}{{ []|min }}
{{ x|sort }}{{ w|sort }}{{ w|sort(case_sensitive=true) }}{{ x|sort(reverse=true) }}{{ o|sort(attribute="k")|map(attribute="n")|list }}
{{ x|sum }}{{ o|sum(attribute="n") }}{{ x|sum(start=10) }}{{ []|sum }}
{{ w|unique|list }}{{ w|unique(true)|list }}{{ o|unique(attribute="k")|list }}
{{ "%s-%d-%5.2f-%r%%"|format("a", 3, 2.5, "q") }}{{ "%s %s" % ("a", 1) }}{{ "%05d" % 42 }}{{ "%s" % "z" }}
{{ f|round }} {{ f|round(2) }} {{ 2.5|round }} {{ 3.5|round }} {{ 7|round }} {{ 42.55|round(1, "floor") }} {{ 42.51|round(0, "ceil") }} {{ f|round|int }}
{% for b in x|batch(2) %}{{ b }}{% endfor %}{{ x|batch(2, "-")|list }}
{% for g in o|groupby("k") %}{{ g.grouper }}:{{ g.list|length }};{% endfor %}{% for k, l in o|groupby("n") %}{{ k }}{{ l }}{% endfor %}
{{ html|escape }}{{ html|e|e }}{{ "<b>"|safe }}{{ "<b>"|safe + "<i>" }}{{ "<i>" + "<b>"|safe }}{{ "<b>"|safe ~ "<i>" }}
{{ s.rsplit(",", 1) }}{{ t.rsplit(None, 1) }}{{ t.rsplit() }}{{ s.rsplit(",") }}{{ t.split(None, 1) }}
{{ s.index("b") }}{{ s.count(",") }}{{ s.removeprefix("a,") }}{{ s.removesuffix("c") }}{{ lines.splitlines() }}{{ lines.splitlines(true) }}
{{ "{}-{}".format(1, "a") }}{{ "{1}{0}".format("a", "b") }}{{ "{k}{{}}".format(k=2) }}{{ "{:>5}|{:<4}|{:.2f}".format("a", "b", 2.5) }}{{ "{:5d}".format(3) }}
{{ n|selectattr("a")|list }}{{ n|map("upper")|list }}{{ [none, 1, 0]|select|list }}
{{ "abc".partition("b") }}{{ "abcb".rpartition("b") }}{{ "abc".partition("x") }}{{ "12".isdigit() }}{{ "a1".isalpha() }}{{ "".isdigit() }}{{ "abcb".rfind("b") }}
{{ "ab".ljust(4, ".") }}{{ "ab".rjust(4) }}{{ "a b c"|wordcount }}{{ x.index(1) }}{{ x.count(3) }}{{ d|attr("b") }}
{{ [1, 2] * 2 }}{{ (1,) * 2 }}{{ "ab" is lower }}{{ "AB" is upper }}{{ "Ab" is lower }}
{% for i in x %}{{ loop.cycle("a", "b") }}{{ loop.depth }}{% for j in [1] %}{{ loop.depth0 }}{% endfor %}{% endfor %}
{% generation %}hi{{ big }}{% endgeneration %} and {% for i in x %}{% generation %}{{ i }}{% endgeneration %},{% endfor %}
{% generation %}{% set inner = 5 %}{{ inner }}{% endgeneration %}{{ inner is defined }}
{{ neg|abs }}{{ neg // 2 }}{{ neg % 3 }}{{ 7 / 2 }}{{ x[::-1] }}{{ s.split(",", 1) }}'''.split("\n")
out=[]
for t in T:
    try:
        c=u._compile_jinja_template(t)
        tr=[e for e in c.environment.extensions.values() if 'AssistantTracker' in type(e).__name__][0]
        blocks=[];sp=[]
        with tr.activate_tracker(blocks,sp):
            for b in c.generate(**V): blocks.append(b)
        out.append({"template":t,"want":"".join(blocks),"spans":sp})
    except Exception as e:
        print(t,'->',type(e).__name__,e)
json.dump({"vars":V,"cases":out},open(sys.argv[1],'w'),indent=1,ensure_ascii=False)
print(len(out))
