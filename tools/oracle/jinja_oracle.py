"""Live: qvl's template engine against Jinja2 in the environment that transformers makes.

chats: the published templates of $QVL_DATA over the conversations of tests/fixtures/chat_render.json and generated
ones. expressions: templates at random. Output must be equal; where Jinja2 fails, qvl must fail, and where the text of
the error is Jinja's or transformers' own, it must be the same (at random: nearly always, as the first of two faults may
be another one).

Usage: jinja_oracle.py [chats COUNT] [expressions COUNT] [from NUMBER]
"""

import collections
import json
import os
import re
import sys
import warnings
from pathlib import Path

import jinja2

import jinja_chats
import jinja_grammar
import jinja_reference
import qvl_ctypes as qvl

TEMPLATES = Path(os.environ.get("QVL_DATA", qvl.REPOSITORY.parent / "shared" / "data")) / "templates"
NAMES = ("qwen3-vl-instruct", "qwen3-vl-thinking", "qwen3.5", "qwen3.5-small", "qwen3.6", "qwen3.8")
FIXTURES = Path(os.environ.get("QVL_FIXTURES", qvl.REPOSITORY / "tests/fixtures"))
# What docs/TEXT.md says is left out, or differs: Jinja folds constants, and a constant that cannot be sliced becomes
# undefined by that.
LEFT_OUT = (
    "integers beyond 64 bits", "an integer beyond 64 bits", "complex numbers", "'int' object is not subscriptable",
    "'float' object is not subscriptable", "'bool' object is not subscriptable", "unhashable type: 'slice'")
ADDRESS = re.compile("0x[0-9a-f]{8}", re.IGNORECASE)
SHOWN = 10


class Comparison:
    def __init__(self, title):
        self.title, self.counts, self.faults = title, collections.Counter(), 0

    def fault(self, what, template, wanted, found):
        self.faults += 1
        if self.faults <= SHOWN:
            print(f"{self.title}: {what}\n  template {template!r}\n  jinja    {wanted!r}\n  qvl      {found!r}")

    def compare(self, template, variables_json, strict):
        wanted, detail = jinja_reference.render(template, variables_json)
        try:
            found, spans = qvl.render_template(template, variables_json, time=jinja_reference.NOW_SECONDS)
        except qvl.QvlError as error:
            self.refused(template, wanted, detail, error, strict)
            return
        if wanted is None:
            self.fault("no error", template, str(detail), found)
        elif ADDRESS.search(wanted):
            self.counts["not comparable: prints an address"] += 1
        elif found != wanted:
            self.fault("output", template, wanted, found)
        elif not self.in_order(spans, detail):
            self.fault("spans", template, detail, spans)
        else:
            self.counts["equal"] += 1

    @staticmethod
    def in_order(spans, wanted):
        """qvl gives those of transformers' spans that are right: of blocks that go straight to the output."""
        rest = iter([tuple(span) for span in wanted])
        return all(span in rest for span in spans)

    def refused(self, template, wanted, detail, error, strict):
        message = re.sub(r"^template: (line \d+, column \d+: )?", "", error.message)
        left_out = message.startswith(LEFT_OUT)
        if wanted is not None:
            if left_out:
                self.counts["left out"] += 1
            else:
                self.fault("error", template, wanted, f"{error.status}: {error.message}")
            return
        own = isinstance(detail, jinja2.exceptions.TemplateError)
        same = message == jinja_reference.plain(str(detail))
        if strict and own and not same:
            self.fault("error text", template, str(detail), message)
        self.counts["both fail" + (", own text " + ("equal" if same else "differs") if own else "")] += 1

    def finish(self, least):
        total = sum(self.counts.values()) + self.faults
        print(f"{self.title}: {total} compared, {self.faults} differ; " +
              ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items())))
        texts = self.counts["both fail, own text equal"], self.counts["both fail, own text differs"]
        if texts[1] > 0.05 * sum(texts):
            print(f"{self.title}: more than 1 of 20 error texts differ")
            self.faults += 1
        if self.counts["left out"] > 0.005 * total or total < least:
            print(f"{self.title}: too few cases, or too many that are left out")
            self.faults += 1
        return self.faults


def compare_chats(first, count):
    texts = {name: (TEMPLATES / f"{name}.jinja").read_text() for name in NAMES}
    vectors = [case["inputs"] for case in json.loads((FIXTURES / "chat_render.json").read_text())]
    given, made = Comparison("published templates, given conversations"), Comparison("published templates, generated")
    for inputs in {json.dumps(inputs) for inputs in vectors}:
        for text in texts.values():
            given.compare(text, inputs, strict=True)
    for number in range(first, first + count):
        for text in texts.values():
            made.compare(text, json.dumps(jinja_chats.make(number)), strict=True)
    return given.finish(32 * len(NAMES)) + made.finish(count * len(NAMES))


def compare_expressions(first, count):
    comparison = Comparison("templates at random")
    for number in range(first, first + count):
        comparison.compare(jinja_grammar.make(number), jinja_grammar.VARIABLES_JSON, strict=False)
    return comparison.finish(count)


def main():
    warnings.simplefilter("ignore")
    numbers = {"chats": 2000, "expressions": 20000, "from": 0}
    for name, value in zip(sys.argv[1::2], sys.argv[2::2]):
        numbers[name] = int(value)
    print(f"jinja2 {jinja2.__version__}")
    faults = compare_chats(numbers["from"], numbers["chats"])
    faults += compare_expressions(numbers["from"], numbers["expressions"])
    sys.exit(1 if faults else 0)


main()
