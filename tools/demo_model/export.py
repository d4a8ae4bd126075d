"""Makes a complete Hugging Face folder of what train.py left.

    python3 export.py STATE_FOLDER CHECKPOINT_FOLDER [tokenizer.json]

The weights become bf16. Tokenizer settings and chat template are those that the random model's folder has too: both are
byte-level BPE with the published added tokens, and the template has the published structure.
"""

import json
import os
import shutil
import sys

import torch

import model as demo
import train
import words

PICTURE_PIXELS = (36864, 102400)  # 192x192 to 320x320, what it was trained on
CLIP_PIXELS = (65536, 196608)  # of all frames together: 4 of 128x128 to 12 of 128x128


def processor(pixels, **more):
    return {"size": {"shortest_edge": pixels[0], "longest_edge": pixels[1]}, "patch_size": 16, "temporal_patch_size": 2,
            "merge_size": 2, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "processor_class": "Qwen3VLProcessor", **more}


def added_tokens(tokenizer):
    return {str(tokenizer.token_to_id(text)): {"content": text, "single_word": False, "lstrip": False, "rstrip": False,
                                               "normalized": False, "special": special}
            for text, special in words.ADDED}


def write_json(folder, name, tree):
    with open(os.path.join(folder, name), "w") as file:
        json.dump(tree, file, indent=2, ensure_ascii=False)
        file.write("\n")


def main():
    state, out = sys.argv[1:3]
    tokenizer = words.load_tokenizer((sys.argv[3:] or [train.TOKENIZER])[0])
    model = demo.make(tokenizer)
    train.load_state(train.Optimizer(model), state)
    model.to(torch.bfloat16).save_pretrained(out)
    tokenizer.save(os.path.join(out, "tokenizer.json"))
    end, pad = tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")
    write_json(out, "generation_config.json",
               {"do_sample": False, "max_new_tokens": 128, "eos_token_id": [end, pad], "pad_token_id": pad})
    write_json(out, "preprocessor_config.json", processor(PICTURE_PIXELS, image_processor_type="Qwen2VLImageProcessorFast"))
    write_json(out, "video_preprocessor_config.json", processor(CLIP_PIXELS, video_processor_type="Qwen3VLVideoProcessor"))
    write_json(out, "tokenizer_config.json", {
        "add_bos_token": False, "add_prefix_space": False, "added_tokens_decoder": added_tokens(tokenizer), "bos_token": None,
        "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>", "errors": "replace", "model_max_length": 8192,
        "pad_token": "<|endoftext|>", "split_special_tokens": False, "tokenizer_class": "Qwen2Tokenizer", "unk_token": None})
    shutil.copy(os.path.join(os.path.dirname(__file__), "chat_template.jinja"), out)


if __name__ == "__main__":
    main()
