"""A wall of classics: some two hundred books with title and author. Wrong: one title is misspelled."""

from __future__ import annotations

import random

from shapes import box, polyline
from sketch import Sketch

SIZE = (3600, 2400)
WOOD, WOOD_LIGHT, WOOD_DARK, BACK = "#7d5232", "#99693f", "#553620", "#33211a"
CLOTH = (
    "#7b2f33", "#2f4a5f", "#3f5f4a", "#5a3a55", "#8a4530", "#23323f", "#6a4b34", "#35606a", "#8b6a2e",
    "#4a4f2c", "#70303f", "#2b3f6b",
)  # fmt: skip
BOOKS = (
    ("PRIDE AND PREJUDICE", "AUSTEN"), ("EMMA", "AUSTEN"), ("PERSUASION", "AUSTEN"),
    ("MANSFIELD PARK", "AUSTEN"), ("JANE EYRE", "BRONTË"), ("WUTHERING HEIGHTS", "BRONTË"),
    ("VILLETTE", "BRONTË"), ("OLIVER TWIST", "DICKENS"), ("BLEAK HOUSE", "DICKENS"),
    ("HARD TIMES", "DICKENS"), ("DAVID COPPERFIELD", "DICKENS"), ("GREAT EXPECTATIONS", "DICKENS"),
    ("LITTLE DORRIT", "DICKENS"), ("MIDDLEMARCH", "ELIOT"), ("SILAS MARNER", "ELIOT"),
    ("ADAM BEDE", "ELIOT"), ("VANITY FAIR", "THACKERAY"), ("THE MOONSTONE", "COLLINS"),
    ("THE WOMAN IN WHITE", "COLLINS"), ("DRACULA", "STOKER"), ("FRANKENSTEIN", "SHELLEY"),
    ("TREASURE ISLAND", "STEVENSON"), ("KIDNAPPED", "STEVENSON"), ("MOBY DICK", "MELVILLE"),
    ("WALDEN", "THOREAU"), ("THE SCARLET LETTER", "HAWTHORNE"), ("LITTLE WOMEN", "ALCOTT"),
    ("TOM SAWYER", "TWAIN"), ("HUCKLEBERRY FINN", "TWAIN"), ("WAR AND PEACE", "TOLSTOY"),
    ("ANNA KARENINA", "TOLSTOY"), ("THE IDIOT", "DOSTOEVSKY"), ("CRIME AND PUNISHMENT", "DOSTOEVSKY"),
    ("DEMONS", "DOSTOEVSKY"), ("DEAD SOULS", "GOGOL"), ("FATHERS AND SONS", "TURGENEV"),
    ("THE SEAGULL", "CHEKHOV"), ("MADAME BOVARY", "FLAUBERT"), ("SALAMMBÔ", "FLAUBERT"),
    ("GERMINAL", "ZOLA"), ("NANA", "ZOLA"), ("LES MISÉRABLES", "HUGO"), ("CANDIDE", "VOLTAIRE"),
    ("COUSIN BETTE", "BALZAC"), ("THE THREE MUSKETEERS", "DUMAS"), ("THE BLACK TULIP", "DUMAS"),
    ("DON QUIXOTE", "CERVANTES"), ("FAUST", "GOETHE"), ("EGMONT", "GOETHE"), ("THE ROBBERS", "SCHILLER"),
    ("THE DIVINE COMEDY", "DANTE"), ("THE DECAMERON", "BOCCACCIO"), ("THE PRINCE", "MACHIAVELLI"),
    ("THE ILIAD", "HOMER"), ("THE ODYSSEY", "HOMER"), ("THE AENEID", "VIRGIL"),
    ("METAMORPHOSES", "OVID"), ("ANTIGONE", "SOPHOCLES"), ("MEDEA", "EURIPIDES"), ("THE REPUBLIC", "PLATO"),
    ("POETICS", "ARISTOTLE"), ("CONFESSIONS", "AUGUSTINE"), ("UTOPIA", "MORE"), ("ESSAYS", "MONTAIGNE"),
    ("HAMLET", "SHAKESPEARE"), ("MACBETH", "SHAKESPEARE"), ("KING LEAR", "SHAKESPEARE"),
    ("OTHELLO", "SHAKESPEARE"), ("THE TEMPEST", "SHAKESPEARE"), ("PARADISE LOST", "MILTON"),
    ("ROBINSON CRUSOE", "DEFOE"), ("MOLL FLANDERS", "DEFOE"), ("TOM JONES", "FIELDING"),
    ("PAMELA", "RICHARDSON"), ("IVANHOE", "SCOTT"), ("WAVERLEY", "SCOTT"), ("DON JUAN", "BYRON"),
    ("LEAVES OF GRASS", "WHITMAN"), ("THE TIME MACHINE", "WELLS"), ("LORD JIM", "CONRAD"),
    ("NOSTROMO", "CONRAD"), ("KIM", "KIPLING"), ("THE JUNGLE BOOK", "KIPLING"), ("PYGMALION", "SHAW"),
    ("A DOLL'S HOUSE", "IBSEN"), ("PEER GYNT", "IBSEN"), ("DAISY MILLER", "JAMES"),
    ("THE AMERICAN", "JAMES"), ("WASHINGTON SQUARE", "JAMES"), ("FAR FROM THE MADDING CROWD", "HARDY"),
)  # fmt: skip
FLOORS = (430, 820, 1210, 1600, 1990, 2360)
BAYS = ((60, 1190), (1230, 2370), (2410, 3540))
ODD = (1, 3, 6)  # Bay, shelf and book of the fault.
RIGHT, WRONG = ("CRIME AND PUNISHMENT", "DOSTOEVSKY"), ("CRIME AND PUNISHMNET", "DOSTOEVSKY")


def spine(
    s: Sketch, chance: random.Random, tall: float, wide: float, book: tuple[str, str], odd: bool
) -> None:
    """A book that stands with its lower left corner at the origin."""
    code = chance.choice(CLOTH)
    s.fill(box(0, -tall, wide, 0, 5), code)
    shades = ["#000000", "#ffffff", "#ffffff", "#000000"]
    for k, alpha in enumerate((0.34, 0.10, 0.0, 0.30)):
        left = wide * (0, 0.1, 0.4, 0.85)[k]
        s.fill(box(left, -tall, wide * (0.1, 0.4, 0.85, 1)[k], 0), shades[k], alpha, mapped=False)
    gold = "#e8d29a"
    for at in (0.035, 0.05, 0.72, 0.735, 0.95, 0.965):
        s.line(polyline((4, -tall * at), (wide - 4, -tall * at)), 2, gold, 0.9, mapped=False)
    title, author = book
    room = tall * 0.655
    size = min(23.0, wide * 0.6, room / (len(title) * 0.83))
    with s.moved(wide / 2, -tall * 0.39, turn=90), s.part("odd title" if odd else s.now):
        s.words(title, (0, 0), size, gold, face="Sans-Bold")
    size = min(15.0, tall * 0.2 / (len(author) * 0.86))
    with s.moved(wide / 2, -tall * 0.842, turn=90):
        s.words(author, (0, 0), size, gold, face="Sans-Bold")


def shelf(s: Sketch, bay: int, level: int, anomalous: bool) -> None:
    """Books from left to right; no two of one title in a bay."""
    chance = random.Random(100 * bay + level)
    titles = [book for k, book in enumerate(BOOKS) if k % 6 == level and book != RIGHT]
    chance.shuffle(titles)
    left, right = BAYS[bay]
    x, count = left + 4.0, 0
    while count < len(titles) and x < right - 70:
        wide = chance.uniform(46, 66)
        tall = chance.uniform(285, 345)
        name = f"book {bay}-{level}-{count}"
        book, odd = titles[count], (bay, level, count) == ODD
        if odd:
            name, book, wide, tall = "odd book", WRONG if anomalous else RIGHT, 54, 330
        with s.moved(x, FLOORS[level]), s.part(name):
            spine(s, chance, tall, wide, book, odd)
        x += wide + 1.5
        count += 1
    ornament(s, (bay + level * 2) % 4, x, right, FLOORS[level], chance)


def ornament(s: Sketch, kind: int, left: float, right: float, floor: float, chance: random.Random) -> None:
    """What fills the rest of a shelf: books that lie on each other, with a pot or a box on them."""
    top, middle = floor, (left + right) / 2
    wide = min(300.0, right - left - 24)
    if wide < 60:
        return
    for k in range(2 + kind):
        thick, inset = chance.uniform(34, 46), 8.0 * k
        x0, x1 = middle - wide / 2 + inset, middle + wide / 2 - inset
        s.fade(
            box(x0, top - thick, x1, top, 4),
            (0, top - thick),
            (0, top),
            ["#a08a6a", CLOTH[(k * 5 + kind) % 12]],
        )
        for at in (0.06, 0.94):
            x = x0 + at * (x1 - x0)
            s.line(polyline((x, top - thick + 4), (x, top - 4)), 3, "#e8d29a", 0.8, mapped=False)
        top -= thick
    if kind < 3 and wide > 120:
        s.fade(
            box(middle - 44, top - 78, middle + 44, top, 12),
            (middle - 44, 0),
            (middle + 44, 0),
            ["#d8cdb4", "#8f8264"],
        )
        s.line(polyline((middle - 40, top - 46), (middle + 40, top - 46)), 5, "#466b86", mapped=False)
        s.fade(
            box(middle - 52, top - 90, middle + 52, top - 72, 6),
            (middle - 52, 0),
            (middle + 52, 0),
            ["#e8dfc8", "#9a8d70"],
        )


def scene(s: Sketch, anomalous: bool) -> None:
    s.fade(box(0, 0, 3600, 2400), (0, 0), (3600, 0), [WOOD_LIGHT, WOOD])
    for bay, (left, right) in enumerate(BAYS):
        s.fade(box(left, 50, right, 2370), (0, 50), (0, 2370), [BACK, "#241712"])
        for level, floor in enumerate(FLOORS):
            shelf(s, bay, level, anomalous)
            s.fade(
                box(left, floor, right, floor + 28),
                (0, floor),
                (0, floor + 28),
                [WOOD_LIGHT, WOOD, WOOD_DARK],
            )
            s.fade(
                box(left, floor + 28, right, floor + 60),
                (0, floor + 28),
                (0, floor + 60),
                ["#000000", BACK],
                alpha=0.45,
                mapped=False,
            )
    for left, right in ((0, 60), (1190, 1230), (2370, 2410), (3540, 3600)):
        s.fade(box(left, 0, right, 2400), (left, 0), (right, 0), [WOOD_LIGHT, WOOD, WOOD_DARK])
    s.fade(box(0, 0, 3600, 52), (0, 0), (0, 52), [WOOD_LIGHT, WOOD_DARK])
