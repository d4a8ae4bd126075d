"""Generated text for the tokenizer's comparisons: many scripts and everything that splits, merges or normalises oddly.

documents(size, seed, added) gives a list of strings of about `size` bytes of UTF-8 together; the same for the same
arguments on every machine.
"""

import random
import unicodedata

WORDS = (
    "the of and to in is you that it was for on are as with his they at be this from have or by one had not but what "
    "all were when we there can an your which their said if do will each about how up out them then she many some so "
    "these would other into has more her two like him see time could no make than first been its who now people my "
    "made over did down only way find use may water long little very after words called just where most know get "
    "through back much before go good new write our used me man too any day same right look think also around another "
    "came come work three word must because does part even place well such here take why things help put years "
    "different away again off went old number internationalisation electroencephalograph tokenizer Qwen's don't "
    "we'll I'd they've I'm you're DON'T Straße naïve façade Ångström résumé coöperate").split()
CHINESE = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后多定行学法所民得经十三之进着等部度家电力里如水化高自二理起小物现实加量都两体制机当使点从业本去把性好应开它合还因由其些然前外天政四日那社义事平形相全表间样与关各重新线内数正心反你明看原又么利比或但质气第向道命此变条只没结解问意建月公无系军很情者最立代想已通并提直题党程展五果料象员革位入常文总次品式活设及管特件长求老头基资边流路级少图山统接知较将组见计别她手角期根论运农指"
JAPANESE = "これは日本語の文章です。ひらがな、カタカナ、漢字を混ぜて書きます。トークナイザーのテスト用データがぱぴぷぺぽ。"
KOREAN = "이것은 한국어 문장입니다 토크나이저를 시험하기 위한 글입니다 빠르고 정확하게"
RUSSIAN = "это предложение на русском языке для проверки токенизатора который должен работать быстро и точно ёлка йод".split()
GREEK = "αυτή είναι μια πρόταση στα ελληνικά για τον έλεγχο ΐ ΰ ὕδωρ ᾧ".split()
ARABIC = "هَٰذِهِ جُمْلَةٌ بِاللُّغَةِ العَرَبِيَّةِ مَعَ الحَرَكَاتِ هذه جملة عربية بدون حركات للاختبار لأ إ آ ٠١٢٣٤٥٦٧٨٩".split()
HEBREW = "זֶה מִשְׁפָּט בְּעִבְרִית עִם נִקּוּד וגם בלי ניקוד".split()
HINDI = "यह हिन्दी में एक वाक्य है जिसमें मात्राएँ और संयुक्ताक्षर हैं क़ ख़ ग़ ज़ ड़ ढ़ फ़ क्षि त्र ज्ञ श्री १२३४५".split()
THAI = "นี่คือประโยคภาษาไทยที่ใช้ทดสอบตัวตัดคำซึ่งมีสระและวรรณยุกต์ซ้อนกันอยู่น้ำผู้ใหญ่กำลังดีๆ๑๒๓"
TAMIL = "இது தமிழில் ஒரு வாக்கியம் கொ கோ கௌ".split()
VIETNAMESE = "Đây là một câu tiếng Việt để kiểm tra bộ tách từ những nguyễn phường".split()
EMOJI = "😀 😂 🤣 👍🏽 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 🇯🇵 ❤️ 1️⃣ #️⃣ ☃️ 🧑🏿‍🚀 🫠 🪿 𝒜𝓑 🅰️ ™ © ½ ² ₃ Ⅷ ① ㊗️".split()
PUNCTUATION = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + [
    "...", "--", "->", "=>", "://", "/*", "*/", "//", "#!", "&&", "||", "<|", "|>", "</", "}}", "{{", "「", "」", "、", "。",
    "！", "？", "–", "—", "“", "”", "…", "¿", "¡", "«", "»"]
SPACES = [" ", "  ", "    ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\u00a0", "\u2003", "\u3000", "\u0085", "\u2028",
          "\u2029", "\u200b", "\u180e", "\x0b", "\x0c", "\x1c", "\ufeff"]
MARKS = [chr(c) for c in range(0x10FFFF) if not 0xD800 <= c <= 0xDFFF and unicodedata.category(chr(c))[0] == "M"]
ASSIGNED = [c for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
DECOMPOSED = [unicodedata.normalize("NFD", chr(c)) for c in ASSIGNED
              if unicodedata.normalize("NFD", chr(c)) != chr(c) and not 0xAC00 <= c <= 0xD7A3]
CODE = [
    "def {0}({1}, {2}=None):\n    \"\"\"{0} of {1}.\"\"\"\n    return [{1}[i] for i in range(len({1})) if {2} is None]\n",
    "static int {0}(const char *{1}, size_t {2}) {{\n    if (!{1} || {2} > 0x{3:x}) return -1;\n    return {3};\n}}\n",
    "SELECT {0}, COUNT(*) AS {1} FROM {2} WHERE id = {3} GROUP BY {0};\n",
    "{{\"{0}\": [{3}, {4}, null, true], \"{1}\": {{\"{2}\": \"\\u00e9\\n\"}}}}\n",
    "<div class=\"{0}\">\n\t<a href=\"https://{1}.example/{2}?q={3}\">{0}&nbsp;{1}</a>\n</div>\n",
    "const {0} = async ({1}) => {{ await fetch(`/{2}/${{{1}}}`); }};  // {3}\n",
    "$ git commit -m '{0}: {1} {2}' && make -j{4}\r\n",
    "| {0} | {1} | {3}.{4} |\n|---|:---:|---:|\n",
    "fn {0}<'a>({1}: &'a str) -> Result<{2}, Box<dyn Error>> {{ Ok({3}_u32.into()) }}\n",
    "\\begin{{align}} \\frac{{{3}}}{{{4}}} x^{{2}} &= \\alpha_{{{4}}} \\\\ \\end{{align}}\n",
]


def _words(rng, words, count):
    return " ".join(rng.choice(words) for _ in range(count))


def _letters(rng, text, count):
    return "".join(rng.choice(text) for _ in range(count))


def _sentence(rng):
    text = _words(rng, WORDS, rng.randint(4, 24))
    return text[0].upper() + text[1:] + rng.choice([".", ".", ".", "!", "?", ":", ".\n", ".\n\n"]) + " "


def _code(rng):
    name = ["_".join(rng.choice(WORDS) for _ in range(rng.randint(1, 3))).replace("'", "") for _ in range(3)]
    text = rng.choice(CODE).format(*name, rng.randint(0, 99999), rng.randint(0, 9))
    return "\n".join(" " * (4 * rng.randint(0, 3)) + line for line in text.split("\n"))


def _random_points(rng):
    return "".join(chr(rng.choice(ASSIGNED)) for _ in range(rng.randint(1, 40)))


def _marked(rng):
    """Letters under heaps of combining marks, in no order."""
    out = []
    for _ in range(rng.randint(1, 8)):
        out.append(rng.choice(["e", "a", "ạ", "क", "ل", "ש", "か", "ᄀ", "가", "Ω", " ", "1", ""]))
        out.extend(rng.choice(MARKS) for _ in range(rng.choice([1, 1, 2, 3, 8, 40])))
    return "".join(out)


def _digits(rng):
    return rng.choice(["", " ", "-", "0x", "$", "v"]) + "".join(rng.choice("0123456789.,٣५๗²") for _ in range(rng.randint(1, 30)))


def _spaces(rng):
    if rng.random() < 0.1:
        return rng.choice([" ", "\t", "\n", "\r\n", "\u3000"]) * rng.randint(1, 500)
    return "".join(rng.choice(SPACES) for _ in range(rng.randint(1, 12)))


def _long_word(rng):
    unit = rng.choice(["a", "ab", "é", "汉", "=", "-=", "🙂", "\u0301", "xyzzy", "0f"])
    return unit * rng.randint(50, 600)


def _contraction(rng):
    return rng.choice(["it", " ", "", "ß", "1", "'"]) + rng.choice("'’'") + rng.choice(
        ["s", "S", "ſ", "t", "T", "re", "RE", "rE", "ve", "VE", "m", "M", "ll", "LL", "lL", "d", "D", "l", "r", "x", "K", "ﬆ"])


KINDS = [
    (14, _sentence),
    (10, _code),
    (6, lambda rng: _letters(rng, CHINESE, rng.randint(1, 60)) + rng.choice("，。、！")),
    (3, lambda rng: _letters(rng, JAPANESE, rng.randint(1, 40))),
    (3, lambda rng: _letters(rng, KOREAN, rng.randint(1, 30))),
    (1, lambda rng: unicodedata.normalize("NFD", _letters(rng, KOREAN + "é가각", rng.randint(1, 20)))),
    (3, lambda rng: _words(rng, RUSSIAN, rng.randint(1, 12)) + " "),
    (2, lambda rng: _words(rng, GREEK, rng.randint(1, 8)) + " "),
    (4, lambda rng: _words(rng, ARABIC, rng.randint(1, 12)) + " "),
    (2, lambda rng: _words(rng, HEBREW, rng.randint(1, 8)) + " "),
    (4, lambda rng: _words(rng, HINDI, rng.randint(1, 12)) + " "),
    (4, lambda rng: _letters(rng, THAI, rng.randint(5, 40)) + " "),
    (2, lambda rng: _words(rng, TAMIL, rng.randint(1, 8)) + " "),
    (2, lambda rng: _words(rng, VIETNAMESE, rng.randint(1, 12)) + " "),
    (3, lambda rng: "".join(rng.choice(EMOJI) + rng.choice(["", " "]) for _ in range(rng.randint(1, 12)))),
    (3, lambda rng: "".join(rng.choice(PUNCTUATION) for _ in range(rng.randint(1, 12)))),
    (3, _spaces),
    (3, _digits),
    (3, _marked),
    (2, _contraction),
    (3, _random_points),
    (1, lambda rng: "".join(rng.choice(DECOMPOSED) for _ in range(rng.randint(1, 12)))),
    (1, _long_word),
]


def documents(size, seed, added=()):
    """added: contents of added tokens to strew in; every one of them comes up."""
    rng = random.Random(seed)
    weights, makers = zip(*KINDS)
    left = list(added)
    result, total = [], 0
    while total < size:
        parts, want, length = [], rng.choice([20, 200, 2000, 20000]), 0
        while length < want:
            text = rng.choices(makers, weights)[0](rng)
            if added and rng.random() < 0.04:
                token = left.pop() if left else rng.choice(added)
                text += rng.choice([token, token, token * 2, token[:-1], " " + token + " ", token + "\n", token[1:]])
                if token not in text:
                    left.append(token)
            parts.append(text)
            length += len(text)
        document = "".join(parts)
        result.append(document)
        total += len(document.encode())
    return result
