"""Pairs of texts that tokenizers and scorers trip over. No imports: it also runs where uncanny is not."""

LONG = "The clock on the far wall has thirteen hours and its hands are bent like wet paper. " * 60

PAIRS = [
    ("The hand has six fingers.", "The left hand of the woman shows six fingers instead of five."),
    ("the hand has six fingers", "The hand has six fingers."),
    ("A shadow falls toward the lamp. Light cannot do that.", "The shadow points to the light source."),
    ("  leading and trailing spaces \n", "leading and trailing spaces"),
    ("tabs\tand\nnew lines\r\nin between", "tabs and new lines in between"),
    ("Das Fenster spiegelt einen Baum, der nicht da ist: größer, grün.", "The window shows a tree."),
    ("Café, naïve, résumé, Ångström", "Cafe, naive, resume, Angstrom"),
    ("Cafe\u0301 with combining accents", "Caf\u00e9 with combining accents"),
    ("人物的左手有六根手指。", "The hand has six fingers."),
    ("時計の針が三本あります", "時計の文字盤に数字が十三個あります"),
    ("لليد ستة أصابع", "الظل يتجه نحو الضوء"),
    ("На руке шесть пальцев.", "У женщины шесть пальцев на левой руке."),
    ("हाथ में छह उँगलियाँ हैं", "The hand has six fingers."),
    ("A dog 🐕 with five legs 🦵🏽 👩‍👩‍👧", "A dog with five legs"),
    ("🙂🙃", "🙃"),
    (LONG, "The clock has thirteen hours."),
    (LONG, LONG.replace("clock", "watch")),
    ("x" * 300, "a very long word of x"),
    ("...", "?!"),
    ("6", "six"),
    ("The [MASK] and the <mask> are shown [SEP] here </s>.", "The mask is shown here."),
    ("don't, can't; it's 3.5 cm (about 1/2\")", "do not cannot it is 3.5cm"),
    ("zero\u200bwidth and soft\u00adhyphen", "zerowidth and softhyphen"),
    ("UPPER CASE TEXT", "upper case text"),
    ("The same text.", "The same text."),
]
