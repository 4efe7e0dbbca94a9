"""How templates of conversations come out, against transformers' own environment for them. Run by hand it writes
internal/leaf/jinja/testdata/talks.json, to which Go's tests hold Starling: python talks.py FILE [FOLDER of more templates]"""

import json
import os
import random
import sys
from datetime import datetime
from unittest import mock

from transformers.utils import chat_template_utils

HERE = os.path.join(os.path.dirname(__file__), "../../../internal/jinja/testdata/templates")
NOW = datetime(2026, 11, 3, 9, 5, 7)

# What the language does, one thing each; x, talk and n are given.
PROBES = r"""
{{ 1 + 2 * 3 - 4 // 3 % 2 }} {{ 7 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7.0 }} {{ 1e5 if false else 2.5e0 }}
{{ 'a' ~ 1 ~ none ~ true ~ [1, 'b', ("c",), {'d': 2.0}] }}
{{ "it's" ~ ['it\'s', "say \"hi\"", 'both \' and "', 'tab\t\n'] }}
{{ x[0] }}{{ x[-1] }}{{ x[1:] }}{{ x[::-1] }}{{ x[:-1] }}{{ x[5:] }}{{ 'abcdé'[::-2] }}{{ 'abc'[1] }}{{ x[99] }}
{{ x is defined }} {{ y is defined }} {{ y is not defined }} {{ not y }} {{ none is none }} {{ x is iterable }} {{ 'a' is string }} {{ talk is mapping }} {{ 3 is odd }}
{{ y | default('none given') }} {{ '' | default('empty', true) }} {{ none | default('x') }}
{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a-b-c'.split('-', 1) }} {{ '  x '.strip() }}| {{ 'xxaxx'.strip('x') }} {{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'bc')) }}
{{ 'Hello wORLD don\'t'.title() }} {{ 'hELLO'|capitalize }} {{ 'ab'|upper }} {{ 'a.b'.replace('.', '!') }} {{ 'aaa'|replace('a', 'b', 2) }}
{% for k, v in talk.items() %}{{ k }}={{ v }};{% endfor %}
{% for a in x if a > 1 %}{{ loop.index }}/{{ loop.length }}:{{ a }}{{ ',' if not loop.last }}{% else %}none{% endfor %}
{% for a in [] %}{{ a }}{% else %}empty{% endfor %}
{% for a in x %}{% if a == 2 %}{% continue %}{% endif %}{% if a == 4 %}{% break %}{% endif %}{{ a }}{{ loop.previtem }}{{ loop.nextitem }} {% endfor %}
{% set a = 1 %}{% for b in x %}{% set a = b %}{% endfor %}{{ a }}
{% set ns = namespace(found=false, n=0) %}{% for b in x %}{% set ns.n = ns.n + b %}{% if b == 3 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }} {{ ns.n }}
{% set t %}block {{ 1 + 1 }}{% endset %}[{{ t }}]
{% macro hi(name, mark='!') %}hi {{ name }}{{ mark }}{% endmacro %}{{ hi('you') }}{{ hi('me', mark='?') }}{{ hi(name='us') }}
{{ talk | tojson }} {{ {'a': [1, 2.0, none, true], 'ü': '<"\u2028'} | tojson }} {{ [] | tojson }} {{ {} | tojson(indent=2) }}
{{ {'b': [1, {'c': []}], 'a': 'x'} | tojson(indent=4) }}
{{ {'b': 1, 'a': 'é'} | tojson(sort_keys=true, ensure_ascii=true, separators=(',', ':')) }}
{{ x | length }} {{ x | join('-') }} {{ x | first }} {{ x | last }} {{ x | list }} {{ 'abc' | list }} {{ x | reverse | list }}
{{ [{'r': 'a', 'c': 1}, {'r': 'b', 'c': 2}] | selectattr('r', 'equalto', 'a') | list }} {{ [{'r': 'a'}, {'q': 1}] | rejectattr('r') | list }} {{ x | select('odd') | list }} {{ [{'r': 1}, {'r': 2}] | map(attribute='r') | join(',') }} {{ ['a', 'b'] | map('upper') | join }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' in 'cat' }} {{ 5 not in x }} {{ 'role' in talk }} {{ not 1 == 2 }} {{ (1, 2) == (1, 2) }} {{ 1 == 1.0 }} {{ true == 1 }} {{ '1' == 1 }}
{{ 1 and 0 or 'z' }} {{ none or [] or 'q' }} {{ 'a' if none else 'b' }} {{ 'a' if 0 }}|
   {% if true %}
 in
   {% endif %}
  {%- if true %} tight {% endif -%}   
 end
a  {#- gone -#}  b {# stays #} c
	{% for i in range(3) %}
	line {{ i }}
	{% endfor %}
{{ range(2, 10, 3) | list }} {{ range(5, 0, -2) | list }} {{ range(0) | list }}
{{ strftime_now('%d %b %Y, %H:%M %A %%') }}
{% if x is defined and x is not none and x | length > 2 %}many{% elif x %}few{% else %}no{% endif %}
{{ talk.role }} {{ talk['role'] }} {{ talk.get('none', 'dflt') }} {{ talk.missing }}| {{ talk.missing is defined }}
{{ -1 | abs }} {{ '3' | int + 1 }} {{ 'x' | int }} {{ 2.7 | int }} {{ '2' | float }} {{ 'a\nb' | indent(2) }} {{ ' a ' | trim }}
{{ [1, 2] + [3] }} {{ 'ab' * 2 }} {{ "con" "cat" }} {{ 'é' | length }} {{ {'a': 1} | items | list }} {{ {'b': 1, 'A': 2} | dictsort }}
{% generation %}{{ 'said' }}{% endgeneration %}
{{ x.missing.more }}
{{ y.more }}
{{ y + 'a' }}
{{ 1 + 'a' }}
{{ none + 1 }}
{{ raise_exception('no') }}
{{ nothere('a') }}
{{ x | nosuchfilter }}
{% for a in 5 %}{% endfor %}
{{ 1 // 0 }}
{% if %}
{% endif %}
{{ 'a
{% set x.y = 1 %}
""".strip("\n")

VARS = {"x": [1, 2, 3, 4], "talk": {"role": "user", "content": "hé", "n": 3, "f": 0.5}, "n": 7}
WORDS = ["hello", "what is\n1 + 1?", "  spaces  ", "", "Grüß Gott 🙂", "a <|im_end|> b", "{{ x }}", 'say "hi" \\ there', "<think>\nhm\n</think>\n\nyes", "</think>", "<tool_response>x</tool_response>", "\n\n"]


def conversation(rng):
    text = lambda: " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 4)))
    talk = [{"role": "system", "content": text()}] if rng.random() < 0.4 else []
    for _ in range(rng.randrange(1, 5)):
        talk.append({"role": "user", "content": text()})
        if rng.random() < 0.2:
            call = {"name": "f", "arguments": {"a": rng.choice([1, 1.5, None, True, "é\"", [1, {"b": []}]])}}
            talk.append({"role": "assistant", "content": rng.choice(["", text()]), "tool_calls": [{"type": "function", "function": call}] * rng.randrange(1, 3)})
            talk += [{"role": "tool", "content": text()}] * rng.randrange(1, 3)
        if rng.random() < 0.8:
            talk.append({"role": "assistant", "content": text()})
    v = {"messages": talk, "add_generation_prompt": rng.random() < 0.5, "bos_token": "<s>", "eos_token": "</s>"}
    if rng.random() < 0.3:
        v["tools"] = [{"type": "function", "function": {"name": "f", "description": text(), "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}}] * rng.randrange(1, 3)
    if rng.random() < 0.2:
        v["enable_thinking"] = rng.random() < 0.5
    return v


def render(template, given):
    try:
        with mock.patch.object(chat_template_utils, "datetime", mock.Mock(now=lambda: NOW)):
            return {"want": chat_template_utils._compile_jinja_template(template).render(**given)}
    except Exception as e:  # whatever is wrong with a template
        return {"refused": type(e).__name__}


def main(out, *folders):
    rng = random.Random(1)
    probes = [{"template": p, **render(p, VARS)} for p in split(PROBES)]
    talks = []
    for folder in (HERE, *folders):
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name)) as f:
                template = f.read()
            for _ in range(25):
                given = conversation(rng)
                talks.append({"name": name, "given": given, **render(template, given)} | ({} if folder == HERE else {"template": template}))
    with open(out, "w") as f:
        json.dump({"from": "lab/bench/interop/talks.py", "vars": VARS, "probes": probes, "talks": talks}, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


def split(text):
    """Probes are lines; an indented line, and one behind it, belongs to the one before."""
    out = []
    for line in text.split("\n"):
        if out and (line[:1] in " \t" and out[-1][:1] in " \t" or line == " end"):
            out[-1] += "\n" + line
        else:
            out.append(line)
    return out


if __name__ == "__main__":
    main(*sys.argv[1:])
