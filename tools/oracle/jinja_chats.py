"""Conversations at random, as inputs of the published chat templates: every role, tools and calls, reasoning, pictures
and videos in all spellings, odd contents, every option.
"""

import random

WORDS = (
    "Hi", "What is this?", "  two  spaces ", "line\nbreak", "Grüße", "图片里有什么？", "مرحبا", "😀👩‍🔬", "", " ", "\n", "a\tb",
    "\u00a0nbsp\u00a0", "\u2028", "<think>", "</think>", "<think>\nhm\n</think>\n\nyes", "<tool_response>\nx\n</tool_response>",
    "<|im_end|>", "<|image_pad|>", "{{ x }}", "{% if %}", "\\n", "\"quoted\" & <b>", "e\u0301", "\x7f", "\x01", "0")
NAMES = ("get_weather", "f", "search", "größe", "a b", "")
SCALARS = (None, True, False, 0, 1, -7, 2.0, 0.1, 1e-7, 1e16, 123456789012345678901234567890, "", "x", "2", "é\"\\\n/")


class Chat:
    def __init__(self, number):
        self.random = random.Random(number)

    def pick(self, choices):
        return self.random.choice(choices)

    def chance(self, share):
        return self.random.random() < share

    def text(self):
        return "".join(self.pick(WORDS) for _ in range(self.pick((1, 1, 1, 2, 3))))

    def value(self, depth=2):
        if depth == 0 or self.chance(0.6):
            return self.pick(SCALARS) if self.chance(0.7) else self.text()
        if self.chance(0.5):
            return [self.value(depth - 1) for _ in range(self.random.randrange(4))]
        keys = ("a", "b", "items", "keys", "ü", "z", "", "a b")
        return {self.pick(keys): self.value(depth - 1) for _ in range(self.random.randrange(4))}

    def tool(self):
        function = {"name": self.pick(NAMES), "description": self.text(), "parameters": {
            "type": "object", "properties": {self.pick(("q", "n", "items")): {"type": "string", "default": self.value(1)}},
            "required": self.pick(([], ["q"]))}}
        return {"type": "function", "function": function} if self.chance(0.85) else self.value()

    def call(self):
        arguments = {self.pick(("q", "n", "city", "ü")): self.value() for _ in range(self.random.randrange(3))}
        if self.chance(0.1):
            arguments = self.pick(("", "{\"q\": 1}", [], None, 5))
        function = {"name": self.pick(NAMES), "arguments": arguments}
        if self.chance(0.05):
            del function["arguments"]
        return function if self.chance(0.2) else {"type": "function", "id": "1", "function": function}

    def part(self):
        url = "http://x/y.png"
        return self.pick((
            {"type": "text", "text": self.text()}, {"type": "text", "text": self.text()}, {"text": self.text()},
            {"type": "image"}, {"type": "image", "image": url}, {"image": url}, {"type": "image", "url": url},
            {"type": "image_url", "image_url": {"url": url}}, {"image_url": url}, {"type": "video", "video": "v.mp4"},
            {"type": "video"}, {"video": ["a.png", "b.png"]}, {"type": "video", "url": url},
            {"type": "text", "text": self.pick((None, 5, "x"))} if self.chance(0.1) else {"type": "text", "text": "x"},
            self.pick(({"type": "audio", "audio": "a.wav"}, "plain", 7, None, {}, [])) if self.chance(0.15) else {"type": "image"}))

    def content(self):
        if self.chance(0.55):
            return self.text()
        if self.chance(0.06):
            return self.pick((None, 5, True, {"text": "x"}, 1.5))
        return [self.part() for _ in range(self.random.randrange(5))]

    def message(self, first):
        roles = ("user", "user", "user", "assistant", "assistant", "tool")
        role = self.pick(roles + (("system", "system", "system") if first else ("system",) if self.chance(0.1) else ()))
        if self.chance(0.02):
            role = self.pick(("developer", "", None, "User", 3))
        message = {"role": role, "content": self.content()}
        if role == "system" and self.chance(0.7):
            message["content"] = self.text()
        if self.chance(0.02):
            del message["content"]
        if role == "assistant":
            if self.chance(0.4):
                message["reasoning_content"] = self.pick((self.text(), self.text(), None, 3))
            if self.chance(0.3):
                message["tool_calls"] = [self.call() for _ in range(self.random.randrange(4))]
            if self.chance(0.03):
                message["tool_calls"] = self.pick(({}, "x", None, 1))
            if self.chance(0.2):
                message["content"] = "<think>\n" + self.text() + "\n</think>\n\n" + self.text()
        return message

    def inputs(self):
        messages = [self.message(i == 0) for i in range(self.pick((0, 1, 1, 2, 3, 3, 4, 5, 6, 8)))]
        inputs = {"messages": messages, "add_generation_prompt": self.chance(0.7)}
        if self.chance(0.35):
            inputs["tools"] = [self.tool() for _ in range(self.random.randrange(4))]
        if self.chance(0.03):
            inputs["tools"] = self.pick((None, {}, "x", 0))
        options = {
            "enable_thinking": (True, False, True, False, None), "preserve_thinking": (True, False, None),
            "add_vision_id": (True, False), "reasoning_effort": ("xhigh", "medium", "low", "high", None),
            "bos_token": ("<s>",), "documents": (None, [])}
        for name, values in options.items():
            if self.chance(0.3):
                inputs[name] = self.pick(values)
        return inputs


def make(number):
    """The inputs of a case."""
    return Chat(number).inputs()
