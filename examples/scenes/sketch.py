"""A drawing that keeps, beside the picture, which part each pixel belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import skia  # type: ignore[import-not-found]  # needed for these scenes only
from PIL import Image
from regions import Regions

SIZE = (768, 576)
Point = tuple[float, float]


def colour(code: str, alpha: float = 1.0) -> int:
    """`#rrggbb` with an opacity from 0 to 1."""
    value = int(code.lstrip("#"), 16)
    return int(skia.Color(value >> 16, value >> 8 & 255, value & 255, round(alpha * 255)))


class Sketch:
    """Draws every stroke twice: softly on the picture, hard-edged in the part's number on the map.

    Strokes outside any `part`, and those drawn with `mapped=False` (shading, outlines on top), leave the
    map as it is; strokes of part "" erase it.
    """

    def __init__(self, size: tuple[int, int] = SIZE) -> None:
        self.width, self.height = size
        self._picture = skia.Surface(*size)
        self._map = skia.Surface(*size)
        self._canvas, self._map_canvas = self._picture.getCanvas(), self._map.getCanvas()
        self._numbers: dict[str, int] = {"": 0}
        self._part = ""

    @property
    def now(self) -> str:
        """The part that strokes belong to."""
        return self._part

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """What is drawn inside belongs to this part; an inner part wins."""
        before, self._part = self._part, name
        self._numbers.setdefault(name, len(self._numbers))
        yield
        self._part = before

    @contextmanager
    def moved(
        self, x: float = 0, y: float = 0, turn: float = 0, scale: float = 1, flip: bool = False
    ) -> Iterator[None]:
        """Draw about (x, y), turned clockwise by `turn` degrees."""
        for canvas in (self._canvas, self._map_canvas):
            canvas.save()
            canvas.translate(x, y)
            canvas.rotate(turn)
            canvas.scale(-scale if flip else scale, scale)
        yield
        for canvas in (self._canvas, self._map_canvas):
            canvas.restore()

    @contextmanager
    def within(self, path: skia.Path) -> Iterator[None]:
        """Draw only inside a path."""
        for canvas in (self._canvas, self._map_canvas):
            canvas.save()
            canvas.clipPath(path, skia.ClipOp.kIntersect, canvas is self._canvas)
        yield
        for canvas in (self._canvas, self._map_canvas):
            canvas.restore()

    @contextmanager
    def upside_down(self, water_line: float, alpha: float) -> Iterator[None]:
        """Draw mirrored at a horizontal line, faintly: a reflection."""
        self._canvas.saveLayerAlpha(None, round(alpha * 255))
        self._map_canvas.save()
        for canvas in (self._canvas, self._map_canvas):
            canvas.translate(0, 2 * water_line)
            canvas.scale(1, -1)
        yield
        self._canvas.restore()
        self._map_canvas.restore()

    def fill(self, path: skia.Path, code: str, alpha: float = 1.0, mapped: bool = True) -> None:
        self._draw(path, skia.Paint(AntiAlias=True, Color=colour(code, alpha)), mapped)

    def fade(
        self,
        path: skia.Path,
        start: Point,
        end: Point,
        codes: Sequence[str],
        mapped: bool = True,
        alpha: float = 1.0,
    ) -> None:
        """Fill with a straight gradient from start to end."""
        shader = skia.GradientShader.MakeLinear([start, end], [colour(code, alpha) for code in codes])
        self._draw(path, skia.Paint(AntiAlias=True, Shader=shader), mapped)

    def glow(
        self, path: skia.Path, middle: Point, radius: float, codes: Sequence[str], mapped: bool = True
    ) -> None:
        """Fill with a round gradient from the middle out."""
        shader = skia.GradientShader.MakeRadial(middle, radius, [colour(code) for code in codes])
        self._draw(path, skia.Paint(AntiAlias=True, Shader=shader), mapped)

    def shade(self, path: skia.Path, blur: float, alpha: float) -> None:
        """A soft shadow, which belongs to no part."""
        paint = skia.Paint(AntiAlias=True, Color=colour("#000000", alpha))
        paint.setMaskFilter(skia.MaskFilter.MakeBlur(skia.kNormal_BlurStyle, blur))
        self._draw(path, paint, mapped=False)

    def line(self, path: skia.Path, width: float, code: str, alpha: float = 1.0, mapped: bool = True) -> None:
        """A round-ended stroke."""
        paint = skia.Paint(AntiAlias=True, Color=colour(code, alpha), Style=skia.Paint.kStroke_Style)
        paint.setStrokeWidth(width)
        paint.setStrokeCap(skia.Paint.kRound_Cap)
        paint.setStrokeJoin(skia.Paint.kRound_Join)
        self._draw(path, paint, mapped)

    def words(
        self, text: str, middle: Point, size: float, code: str, spacing: float = 0, face: str = "Serif-Bold"
    ) -> None:
        """Letters of a DejaVu face centred about a point, as outlines, which are mapped like shapes."""
        file = f"/usr/share/fonts/truetype/dejavu/DejaVu{face}.ttf"
        font = skia.Font(skia.Typeface.MakeFromFile(file), size)
        widths = [font.measureText(letter) + spacing for letter in text]
        x = middle[0] - (sum(widths) - spacing) / 2
        for letter, width in zip(text, widths, strict=True):
            outline = font.getPath(font.textToGlyphs(letter)[0])
            if outline is not None:
                outline.offset(x, middle[1] + size * 0.36)
                self.fill(outline, code)
            x += width

    def _draw(self, path: skia.Path, paint: skia.Paint, mapped: bool) -> None:
        self._canvas.drawPath(path, paint)
        if mapped:
            number = self._numbers[self._part]
            mark = skia.Paint(AntiAlias=False, Color=skia.Color(number % 256, number // 256, 0))
            mark.setStyle(paint.getStyle())
            mark.setStrokeWidth(paint.getStrokeWidth())
            mark.setStrokeCap(paint.getStrokeCap())
            mark.setStrokeJoin(paint.getStrokeJoin())
            self._map_canvas.drawPath(path, mark)

    def result(self) -> tuple[Image.Image, Regions]:
        """The picture and the visible region of every part."""
        picture = Image.fromarray(np.asarray(self._picture.toarray(colorType=skia.kRGBA_8888_ColorType)))
        levels = self._map.toarray(colorType=skia.kRGBA_8888_ColorType).astype(np.uint16)
        numbers = levels[..., 0] + 256 * levels[..., 1]
        regions = {name: numbers == number for name, number in self._numbers.items() if name}
        return picture.convert("RGB"), regions


def draw(
    scene: Callable[[Sketch, bool], None], anomalous: bool, size: tuple[int, int] = SIZE
) -> tuple[Image.Image, Regions]:
    sketch = Sketch(size)
    scene(sketch, anomalous)
    return sketch.result()
