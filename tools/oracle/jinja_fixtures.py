"""Writes tests/fixtures/jinja_cases.json: templates by feature and at random, and what Jinja2 makes of them.

Usage: jinja_fixtures.py OUTPUT
"""

import json
import sys
import warnings

import jinja2

import jinja_cases
import jinja_grammar
import jinja_reference

RANDOM_CASES = 200
# Texts of Jinja and transformers themselves are compared; those of Python's own exceptions are only mentioned.
OWN = (jinja2.exceptions.TemplateError,)


def outcome(template, variables_json):
    text, result = jinja_reference.render(template, variables_json)
    if text is not None:
        return {"output": text, **({"spans": [list(span) for span in result]} if result else {})}
    if isinstance(result, OWN):
        return {"error": jinja_reference.plain(str(result))}
    return {"error": None, "python": f"{type(result).__name__}: {result}"}


def main():
    warnings.simplefilter("ignore")
    cases = []
    for group, templates in jinja_cases.CASES.items():
        for entry in templates:
            template, variables = entry if isinstance(entry, tuple) else (entry, None)
            text = jinja_grammar.VARIABLES_JSON if variables is None else json.dumps(variables)
            case = {"group": group, "template": template}
            if variables is not None:
                case["variables"] = text.replace("Infinity", "1e400")
            cases.append({**case, **outcome(template, case.get("variables", text))})
    number = 1_000_000  # away from the numbers that the live comparison uses
    while len([case for case in cases if case["group"] == "random"]) < RANDOM_CASES:
        template = jinja_grammar.make(number)
        number += 1
        result = outcome(template, jinja_grammar.VARIABLES_JSON)
        if "output" in result and len(template) < 400 and " at 0x" not in result["output"] and "big" not in template:
            cases.append({"group": "random", "template": template, **result})
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(
            {"versions": {"jinja2": jinja2.__version__}, "variables": jinja_grammar.VARIABLES_JSON, "cases": cases}, file,
            ensure_ascii=False, indent=1)
        file.write("\n")
    print(f"{len(cases)} cases")


main()
