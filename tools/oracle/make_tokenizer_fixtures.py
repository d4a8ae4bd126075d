"""Writes tests/fixtures/tokenizer_qwen3.json: ids that tokenizers gives for text of every kind with the 151k vocabulary.

    tools/oracle/run.sh tools/oracle/make_tokenizer_fixtures.py
"""

import json
import tempfile
from pathlib import Path

import tokenizers

import tokenizer_data
import tokenizer_texts

TEXTS = [
    "Hello, world! It's 2024.\n\n  x",
    "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>What is this?<|im_end|>\n<|im_start|>assistant\n",
    "<think>\n\n</think>\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
    "'s 'S 'ſ 'LL 're 'Ve don't DON'T",
    "   leading,   inner and trailing   ",
    "line\r\nline\r\n\r\n\t\tcode {\n    return 0;\n}\n",
    "",
]


def main():
    with tempfile.TemporaryDirectory() as scratch:
        tokenizer_data.qwen3_folder(Path(scratch))
        reference = tokenizers.Tokenizer.from_file(str(Path(scratch) / "tokenizer.json"))
    added = [t.content for t in reference.get_added_tokens_decoder().values()]
    texts = TEXTS + added + [t[:1500] for t in tokenizer_texts.documents(60000, "fixture", added)][:16]
    cases = []
    for text in texts:
        reference.encode_special_tokens = False
        ids = reference.encode(text).ids
        reference.encode_special_tokens = True
        ordinary = reference.encode(text).ids
        case = {"text": text, "ids": ids, "decoded": reference.decode(ids, skip_special_tokens=False)}
        if ordinary != ids:
            case["ordinary"] = ordinary
        if case["decoded"] == text:
            del case["decoded"]
        cases.append(case)
    path = tokenizer_data.REPOSITORY / "tests" / "fixtures" / "tokenizer_qwen3.json"
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    path.write_text(f'{{"made_with": "tokenizers {tokenizers.__version__}", "cases": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"{path}: {len(cases)} texts, {sum(len(c['text'].encode()) for c in cases)} bytes of text")


if __name__ == "__main__":
    main()
