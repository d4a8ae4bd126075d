"""Jinja as transformers sets it up: what qvl's template engine is compared with."""

import datetime
import json
import re

from transformers.utils import chat_template_utils

# strftime_now shows this time on both sides.
NOW = datetime.datetime(2024, 2, 29, 13, 4, 5)
NOW_SECONDS = int((NOW - datetime.datetime(1970, 1, 1)).total_seconds())


class _FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


chat_template_utils.datetime = _FixedClock


def plain(message):
    """A message as qvl words it: the place in the template is told once, in front, and types are named shortly."""
    message = re.sub(r" at \d+$| on line \d+", "", message)
    message = message.replace("transformers.utils.chat_template_utils.TemplateNamespace", "namespace")
    return "".join(character if character >= " " and character != "\x7f" else "?" for character in message)


def render(template, variables_json):
    """(text, spans) or (None, error). Spans: of generation blocks, in characters."""
    variables = json.loads(variables_json)
    blocks, spans = [], []
    try:
        compiled = chat_template_utils._compile_jinja_template(template)
        with compiled.environment.activate_tracker(blocks, spans):
            for block in compiled.generate(**variables):
                blocks.append(block)
        text = "".join(blocks)
        text.encode()  # half a surrogate pair is no text
        return text, spans
    except Exception as error:
        return None, error
